"""Which model an execution ends in, and which body that came from."""

from __future__ import annotations

import pytest

from pipelines.recipe.offered import Made, final_body, final_model

STEPS = [
    Made("general", 0, "pretrain", "g", {}),
    Made("task", 0, "adapt_task", "t", {"start": "g"}),
    Made("other", 0, "adapt_task", "o", {"start": "g"}),
    Made("answer", 1, "finetune", "a1", {"start": "t"}),
    Made("answer", 0, "finetune", "a0", {"start": "t"}),
    Made("baseline", 0, "finetune", "b0", {"start": "o"}),
]


def test_the_last_that_is_judged_is_what_the_recipe_is_about() -> None:
    judged = Made("report", 0, "evaluate", "e", {"x": "g", "b": "b0", "y": "a1", "z": "a0"})
    found = final_model([*STEPS, judged])
    assert found is not None and found.fingerprint == "a0", "of the last stage judged, the first seed"
    body = final_body([*STEPS, judged])
    assert body is not None and body.fingerprint == "t", "not the baseline's, though it ran last"


def test_without_a_judgement_the_last_model_is_meant() -> None:
    prompts = Made("prompts", 0, "evaluate", "p", {"x": "g"})
    found = final_model([*STEPS, prompts])
    assert found is not None and found.fingerprint == "b0", "prompts judge no model that answers a task"
    assert final_model(STEPS[:3]) is None
    body = final_body(STEPS[:3])
    assert body is not None and body.fingerprint == "o"


@pytest.mark.parametrize("untold", [[], [Made("report", 0, "evaluate", "e", {})]])
def test_an_execution_of_nothing_ends_in_nothing(untold: list[Made]) -> None:
    assert final_model(untold) is None and final_body(untold) is None
