"""A teacher that reads the examples of a stage in tokens of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from pipelines.errors import RecipeError
from pipelines.models.features import encode_examples
from pipelines.models.reading import complete_batches
from pipelines.training.assembly.answer_cache import AnswerCache
from pipelines.training.batches.examples import tensors
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from pipelines.models.opening import OpenedModel
    from pipelines.parts.objectives import Batch, Signals
    from pipelines.task_families.encoding import EncodedExamples


def encoded_for(teacher: OpenedModel, items: EncodedExamples) -> EncodedExamples:
    """The examples of `items` as `teacher` reads them, without answers; equally many items, in the same order.

    Raises RecipeError for a teacher that answers no task, or divides the examples otherwise.
    """
    record, tokenizer = teacher.record, teacher.tokenizer
    if record.task is None:
        raise RecipeError(
            f"teacher_vocabulary: own_tokens: the teacher's head {record.head.name} encodes no examples; name a "
            "teacher that answers the task"
        )
    length = tokenizer.model_max_length
    encoded = encode_examples(
        record.head, items.examples, record.task, tokenizer, length, teacher.features, answers=False
    )
    if not np.array_equal(encoded.owners, items.owners):
        raise RecipeError(
            f"teacher_vocabulary: own_tokens: {len(items):,} rows of the student are {len(encoded):,} of the "
            "teacher's, which divides long examples otherwise; give both the same budget.length, or use shared_tokens"
        )
    complete_batches(encoded, record, tokenizer, length)
    return encoded


class OwnRows:
    """`forward` of a frozen network over `items`, in place of the rows of a batch that stand for the same items."""

    def __init__(self, forward: Callable[[Batch, frozenset[Signal]], Signals], items: EncodedExamples) -> None:
        self._answers, self._items = AnswerCache(forward, items), items

    def __call__(self, batch: Batch, requested: frozenset[Signal]) -> Signals:
        ids = batch[Field.ITEMS]
        rows = tensors(self._items, ids.cpu().numpy())
        own = {Field(name): value.to(ids.device) for name, value in rows.items()}
        return self._answers({**own, Field.ITEMS: ids}, requested)
