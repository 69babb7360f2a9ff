"""What attacks cost real models, against the figures worked out from the written record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RecipeError
from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.recipe.job import Job
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Stage
from tests.pipelines.judging.evaluations.conftest import Trained

ATTACKS = ["shuffled_letters", "letter_case", "keyboard_typos"]


def job(trained: Trained, out: Path, suite: list[dict[str, Any]], **changes: Any) -> Job:
    stage = Stage.model_validate({"kind": Kind.EVALUATE, "start": ["scratch", "classify"], "suite": suite})
    values: dict[str, Any] = {
        "fingerprint": "f" * 64,
        "recipe": "tiny",
        "stage_name": "report",
        "stage": stage,
        "seed": 0,
        "language": "en",
        "subjects": tuple(one for one in trained.subjects if one.stage != "int8"),
        "tables": trained.tables,
        "out": out,
    }
    return Job(**(values | changes))


def section(trained: Trained, out: Path, name: str, **keys: Any) -> dict[str, Any]:
    evaluate(job(trained, out, [{"name": name, **keys}]))
    found: dict[str, Any] = json.loads((out / EVALUATION).read_text())["sections"][name]
    return found


def test_words_without_their_letters_cost_a_model_that_reads_them_and_capitals_cost_nothing(
    trained: Trained, tmp_path: Path
) -> None:
    # of two seeds hardly anything is certain; of one, what examples say is
    one_seed = tuple(one for one in trained.subjects if one.stage != "int8" and one.seed == 0)
    suite = [{"name": "robustness", "attacks": ATTACKS, "rate": 1.0, "examples": 200}]
    evaluate(job(trained, tmp_path, suite, subjects=one_seed))
    found = json.loads((tmp_path / EVALUATION).read_text())["sections"]["robustness"]
    assert found["attacks"] == ATTACKS and found["metric"] == "macro_f1"
    (classify,) = [stage for stage in found["stages"] if stage["stage"] == "classify"]
    assert classify["loss"]["shuffled_letters"]["macro_f1"]["verdict"] == "worse"
    # its tokenizer lowers every letter
    assert classify["attacked"]["letter_case"] == classify["clean"]
    assert classify["loss"]["letter_case"]["macro_f1"] == {
        "difference": 0.0, "low": 0.0, "high": 0.0, "verdict": "cannot tell"
    }  # fmt: skip
    for name in ATTACKS:
        difference = classify["attacked"][name]["macro_f1"]["mean"] - classify["clean"]["macro_f1"]["mean"]
        assert classify["loss"][name]["macro_f1"]["difference"] == pytest.approx(difference, abs=1e-9)
        assert found["changed"][name] > 0.99
    assert {one["attack"] for one in found["shown"]} == set(ATTACKS)
    assert all(one["clean"] != one["attacked"] for one in found["shown"])


def test_an_attack_is_the_same_whatever_stands_beside_it(trained: Trained, tmp_path: Path) -> None:
    both = section(trained, tmp_path / "both", "robustness", attacks=ATTACKS[:2], rate=0.5, examples=60)
    alone = section(trained, tmp_path / "alone", "robustness", attacks=ATTACKS[:1], rate=0.5, examples=60)
    for first, second in zip(both["stages"], alone["stages"], strict=True):
        assert first["attacked"][ATTACKS[0]] == second["attacked"][ATTACKS[0]]
        assert first["loss"][ATTACKS[0]] == second["loss"][ATTACKS[0]]


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"attacks": ["distractor"]}, "distractor could change the right answer in text_classification"),
        ({"attacks": ["homophones"]}, "homophones is for zh, and this dataset's language is en"),
        ({"attacks": ["letter_case"], "metric": "f1"}, "has no metric 'f1'. Did you mean 'mcc'|has no metric 'f1'"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    keys: dict[str, Any], says: str, trained: Trained, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=says):
        evaluate(job(trained, tmp_path / "out", [{"name": "robustness", **keys}]))
    assert not (tmp_path / "out").exists()
