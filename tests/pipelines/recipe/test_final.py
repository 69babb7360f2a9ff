"""Which model an execution ends in, and which body that came from."""

from __future__ import annotations

import pytest

from pipelines.recipe.final_models import LineageStep, final_backbone, final_model

STEPS = [
    LineageStep("general", 0, "pretrain", "g", {}),
    LineageStep("task", 0, "adapt_task", "t", {"start": "g"}),
    LineageStep("other", 0, "adapt_task", "o", {"start": "g"}),
    LineageStep("answer", 1, "finetune", "a1", {"start": "t"}),
    LineageStep("answer", 0, "finetune", "a0", {"start": "t"}),
    LineageStep("baseline", 0, "finetune", "b0", {"start": "o"}),
]


def test_the_last_that_is_judged_is_what_the_recipe_is_about() -> None:
    judged = LineageStep("report", 0, "evaluate", "e", {"x": "g", "b": "b0", "y": "a1", "z": "a0"})
    found = final_model([*STEPS, judged])
    assert found is not None and found.fingerprint == "a0", "of the last stage judged, the first seed"
    body = final_backbone([*STEPS, judged])
    assert body is not None and body.fingerprint == "t", "not the baseline's, though it ran last"


def test_without_a_judgement_the_last_model_is_meant() -> None:
    prompts = LineageStep("prompts", 0, "evaluate", "p", {"x": "g"})
    found = final_model([*STEPS, prompts])
    assert found is not None and found.fingerprint == "b0", "prompts judge no model that answers a task"
    assert final_model(STEPS[:3]) is None
    body = final_backbone(STEPS[:3])
    assert body is not None and body.fingerprint == "o"


@pytest.mark.parametrize("untold", [[], [LineageStep("report", 0, "evaluate", "e", {})]])
def test_an_execution_of_nothing_ends_in_nothing(untold: list[LineageStep]) -> None:
    assert final_model(untold) is None and final_backbone(untold) is None
