"""Encoded examples of one row or several each: the windows of a text, the choices of a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.parts.heads.token_rows import TokenRows
from pipelines.task_families.encoding import EncodedExamples, FieldArrays
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families import Row
    from pipelines.task_families.columns import Columns


class RowGroups(EncodedExamples):
    """Encoded examples, each an item of adjacent rows.

    Args:
        rows: those of all examples, one after the other.
        counts: int64 [examples], the number of rows of each.
        existing: the field, int64 [B, K], that is 1 for a row of an example, and 0 for one that stands for none.
        labels: int64 [examples], the ground truth; None where it is not known.
    """

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        counts: NDArray[np.int64],
        existing: Field,
        labels: NDArray[np.int64] | None,
    ) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self._rows, self._counts, self._existing, self._labels = rows, counts, existing, labels
        self._firsts = np.cumsum(counts) - counts
        self.lengths = np.add.reduceat(rows.lengths, self._firsts) if len(examples) else self.owners

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """[B · K, L] rows, K the largest number of rows of an example in the batch. Rows that stand for none have a
        single token, so that a mean over tokens is defined and no next token is predicted."""
        widest = int(self._counts[chosen].max())
        columns = np.arange(widest)
        exists = columns < self._counts[chosen][:, None]
        rows = self._firsts[chosen][:, None] + np.where(exists, columns, 0)
        fields = self._rows.batch(rows.ravel().tolist())
        fields[Field.ATTENTION_MASK][~exists.ravel(), 1:] = 0
        fields[self._existing] = exists.astype(np.int64)
        if self._labels is not None:
            fields[Field.LABELS] = self._labels[chosen]
        return fields

    def columns(self) -> Columns:
        labels: Columns = {} if self._labels is None else {"labels": self._labels}
        return {**self._rows.columns(), "counts": self._counts, **labels}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> RowGroups:
        rows = self._rows.with_columns(columns)
        return RowGroups(examples, rows, columns["counts"], self._existing, columns.get("labels"))
