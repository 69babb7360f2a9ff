"""A student that cannot match its teacher is refused in one sentence, when the recipe is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.recipe.problems import Setting
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled
from tests.steps import library_of

DIMS = "{{hidden_size: {}, num_hidden_layers: {}, num_attention_heads: {}, intermediate_size: 64}}"
BODY = "{{name: transformer, architecture: bert, dims: " + DIMS + "}}"
DEEP = {"backbone": BODY.format(32, 4, 2)}
"""The teacher: four layers of two heads, 32 wide."""
TASK = (
    "kind: finetune, corpus: task, head: sequence_classification, strategy: full, teacher: answer, "
    "budget: {epochs: 1, length: 64}"
)


def student(objective: str, width: int = 32, layers: int = 4, heads: int = 2) -> tuple[str, ...]:
    """A stage that is taught, above a network of its own over the same tokens."""
    body = BODY.format(width, layers, heads)
    own = f"  own: {{like: general, backbone: {body}, budget: {{tokens: 0, length: 32}}}}"
    return own, f"  student: {{start: {{untrained: own}}, objective: {objective}, {TASK}}}"


UNFIT = {
    "another width": (
        student("[match_logits, cosine_hidden]", width=64),
        "cosine_hidden: the student's states have 64 elements and its teacher's 32, between which there is no cosine",
    ),
    "another width of patient states": (
        student("patient_states", width=16),
        "patient_states: the student's states have 16 elements and its teacher's 32, and both are compared as they are",
    ),
    "more layers than the teacher": (
        student("patient_states", layers=5),
        "patient_states: the student has 5 layers and its teacher 4, so that some match none",
    ),
    "a single layer": (
        student("patient_states", layers=1),
        "patient_states: the student has a single layer, and the layers below the top are those that learn",
    ),
    "other heads": (
        student("match_attention", heads=4),
        "match_attention: the student has 4 attention heads and its teacher 2, so that none corresponds to another",
    ),
    "layers that were removed": (
        (
            "  student: {kind: compress, start: answer, corpus: task, head: sequence_classification, teacher: answer, "
            "strategy: full, compression: {name: select_layers, share: 0.25}, objective: patient_states, "
            "budget: {epochs: 1, length: 64}}",
        ),
        "patient_states: the student has a single layer",
    ),
}


@pytest.mark.parametrize(("stages", "says"), UNFIT.values(), ids=UNFIT)
def test_networks_that_do_not_correspond_are_refused(stages: tuple[str, ...], says: str, tmp_path: Path) -> None:
    message = refusal(tmp_path, "meeting", labelled(*stages, general=DEEP))
    check_refusal(message, (f"stages.student.objective: {says}",))


@pytest.mark.parametrize(
    "stages",
    [
        student("[match_logits, match_hidden]", width=16, layers=2),
        student("patient_states", layers=2),
        student("match_logits", 64, 9),
    ],
    ids=["a projection", "fewer layers", "logits alone"],
)
def test_networks_that_correspond_are_not_refused(stages: tuple[str, ...], tmp_path: Path) -> None:
    assert library_of(tmp_path, meeting=labelled(*stages, general=DEEP)).load("meeting").stages["student"].teacher


def test_a_teacher_of_another_task_is_refused(tmp_path: Path) -> None:
    other = "  other: {like: answer, corpus: topics}"
    taught = "  student: {like: answer, teacher: other, objective: [cross_entropy, match_logits]}"
    setting = Setting("text_classification", "en", {}, {"topics": "text_classification"})
    message = refusal(tmp_path, "meeting", labelled(other, taught), setting)
    says = "stages.student.teacher: other was trained on topics, and this stage on task: its logits are of other labels"
    check_refusal(message, (says, "name a teacher of the same task"))
    states = taught.replace("match_logits", "match_hidden")
    assert library_of(tmp_path, meeting=labelled(other, states)).load("meeting", setting=setting).stages["student"]
