"""A teacher that reads the examples of a stage in tokens of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.errors import RecipeError
from pipelines.models.features import encode_part
from pipelines.models.reading import complete_batches
from pipelines.training.assembly.answer_cache import AnswerCache
from pipelines.training.batches.examples import tensors
from pipelines.training.batches.stored_examples import encode_stored
from pipelines.training.ranks import process_group
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from pipelines.models.opening import OpenedModel
    from pipelines.parts.objectives import Batch, Signals
    from pipelines.task_families import Row
    from pipelines.task_families.encoding import EncodedExamples, FieldArrays
    from pipelines.training.batches.augmented_examples import AugmentedExamples


class OwnTokens:
    """How `teacher` encodes examples: as it does when it answers. `folder` receives them where they are many.

    Raises RecipeError for a teacher that answers no task.
    """

    def __init__(self, teacher: OpenedModel, folder: Path) -> None:
        self._teacher, self._folder = teacher, folder
        self._complete: Callable[[FieldArrays], FieldArrays] | None = None
        self._is_known = False
        if teacher.record.task is None:
            raise RecipeError(
                f"teacher_vocabulary: own_tokens: the teacher's head {teacher.record.head.name} encodes no examples; "
                "name a teacher that answers the task"
            )

    def encode(self, rows: Sequence[Row]) -> EncodedExamples:
        """`rows` as the teacher reads them, without answers."""
        record, tokenizer = self._teacher.record, self._teacher.tokenizer
        assert record.task is not None
        length = tokenizer.model_max_length
        features = self._teacher.features
        encoded = encode_part(record.head, rows, record.task, tokenizer, length, features, answers=False)
        if not self._is_known:
            complete_batches(encoded, record, tokenizer, length)
            self._complete, self._is_known = encoded.complete, True
        encoded.complete = self._complete
        return encoded

    def encode_items(self, items: EncodedExamples) -> EncodedExamples:
        """The examples of `items`, which must be equally many items in the same order. RecipeError otherwise."""
        rows = items.examples
        encoded = process_group.rank_zero_first(lambda: encode_stored(rows, self.encode, self._folder))
        encoded.complete = self._complete
        if not np.array_equal(encoded.owners, items.owners):
            raise RecipeError(
                f"teacher_vocabulary: own_tokens: {len(items):,} rows of the student are {len(encoded):,} of the "
                "teacher's, which divides long examples otherwise; give both the same budget.length, or use "
                "shared_tokens"
            )
        return encoded


class OwnAugmentedRows:
    """`forward` of a frozen network over `augmented`, in place of the rows of a batch of the same changed items."""

    def __init__(self, forward: Callable[[Batch, frozenset[Signal]], Signals], augmented: AugmentedExamples) -> None:
        self._forward, self._augmented = forward, augmented

    def __call__(self, batch: Batch, requested: frozenset[Signal]) -> Signals:
        ids = batch[Field.ITEMS]
        rows = self._augmented.batch(ids.cpu().numpy())
        return self._forward({Field(name): value.to(ids.device) for name, value in rows.items()}, requested)


class OwnRows:
    """`forward` of a frozen network over `items`, in place of the rows of a batch that stand for the same items."""

    def __init__(self, forward: Callable[[Batch, frozenset[Signal]], Signals], items: EncodedExamples) -> None:
        self._answers, self._items = AnswerCache(forward, items), items

    def __call__(self, batch: Batch, requested: frozenset[Signal]) -> Signals:
        ids = batch[Field.ITEMS]
        rows = tensors(self._items, ids.cpu().numpy())
        own = {Field(name): value.to(ids.device) for name, value in rows.items()}
        return self._answers({**own, Field.ITEMS: ids}, requested)
