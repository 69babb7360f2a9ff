"""What evaluations say, before they run, that they will show to each model."""

from __future__ import annotations

import pytest

from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Stage

ASKED = EvaluationSize(documents=400, tokens=100.0, answers=3, models=4)


def part(**settings: object) -> Evaluation:
    stage = Stage.model_validate({"kind": Kind.EVALUATE, "start": ["one", "two"], "suite": [settings]})
    (found,) = stage.suite
    return found


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"name": "scores", "ladder": ["one", "two"]}, []),
        ({"name": "calibration"}, []),
        (
            {"name": "robustness", "attacks": ["letter_case", "punctuation"], "examples": 1000},
            [ForwardPasses(800, 100)],
        ),
        ({"name": "robustness", "attacks": ["letter_case"], "examples": 50}, [ForwardPasses(50, 100)]),
        # two stages of four models, thirty calls with one text and ten with thirty-two
        ({"name": "footprint", "stages": ["one", "two"], "rounds": 30}, [ForwardPasses((30 + 320) * 2 / 4, 100)]),
        ({"name": "footprint", "stages": ["one"], "rounds": 2}, [ForwardPasses((2 + 32) / 4, 100)]),
        # all four of them
        ({"name": "serving", "rounds": 30}, [ForwardPasses(30 + 320, 100)]),
        ({"name": "perplexity", "texts": 500, "length": 50}, [ForwardPasses(800, 50, scored=50)]),
        ({"name": "perplexity", "texts": 10, "length": 256}, [ForwardPasses(10, 100, scored=100)]),
        # a text of a hundred tokens is read a hundred times
        ({"name": "pseudo_perplexity", "texts": 10, "length": 64}, [ForwardPasses(1000, 64, scored=1)]),
        # gradients at twenty points cost three passes each; then a text is read once without each of its words
        ({"name": "attribution", "texts": 10, "steps": 20, "draws": 3}, [ForwardPasses(10 * (60 + 100 + 5), 100)]),
        (
            {"name": "prompting", "shots": [0, 4], "examples": 20, "tokens": 8},
            [ForwardPasses(60, 16, scored=16), ForwardPasses(60, 80, scored=80)],
        ),
        # its answer and the words around it are eight tokens more; and each text may say nothing in three ways
        (
            {"name": "prompting", "shots": [0], "examples": 20, "calibrate": True},
            [ForwardPasses(240, 108, scored=108)],
        ),
    ],
)
def test_what_each_model_is_shown_beside_the_test_table(
    settings: dict[str, object], wanted: list[ForwardPasses]
) -> None:
    assert list(part(**settings).forward_passes(ASKED)) == wanted
