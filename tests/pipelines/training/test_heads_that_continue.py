"""Which head of a start a stage continues: of its kind, its family of tasks, its labels, and its classes."""

from __future__ import annotations

import pytest

from pipelines.models.opening import ModelRecord
from pipelines.parts.heads import Head
from pipelines.task_families import TaskFamily
from pipelines.training.assembly.head_weights import continued_weights

LABELS = ("no", "yes")


def record(head: object, family: str | None = None, labels: tuple[str, ...] = ()) -> ModelRecord:
    """The record of a network with one head."""
    task = None if family is None else TaskFamily.model_validate(family)
    return ModelRecord(head=Head.model_validate(head), family=task, labels=labels)


NINE = {"name": "row_classes", "classes": 9}


@pytest.mark.parametrize(
    ("before", "after", "continues"),
    [
        (record(NINE), record(NINE), True),
        (record(NINE), record("row_classes"), False),
        (record({"name": "token_classes", "classes": 4}), record("token_classes"), False),
        (record("masked_lm"), record("masked_lm"), True),
        (
            record("sequence_classification", "text_classification", LABELS),
            record("sequence_classification", "text_classification", LABELS),
            True,
        ),
        (
            record("sequence_classification", "pair_classification", LABELS),
            record("sequence_classification", "text_classification", LABELS),
            False,
        ),
        (
            record("sequence_classification", "text_classification", LABELS),
            record("sequence_classification", "text_classification", ("a", "b")),
            False,
        ),
    ],
)
def test_a_head_continues_from_one_on_the_same_task(before: ModelRecord, after: ModelRecord, continues: bool) -> None:
    import torch

    weights = {"body.weight": torch.ones(1), "classifier.weight": torch.ones(1)}
    taken, new = continued_weights(weights, before, after, "body.")
    assert ("classifier.weight" in taken) == continues and (new == ("",)) != continues and "body.weight" in taken
