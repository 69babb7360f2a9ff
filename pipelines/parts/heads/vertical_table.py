"""Answers to questions about a table whose rows are read one by one (Yin et al. 2020, TaBERT)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field as Option

from pipelines.parts.heads import Batch, backbone_inputs
from pipelines.parts.heads.row_groups import RowGroups
from pipelines.parts.heads.table_answers import (
    CELLS,
    NO_CELL,
    TABLE,
    LabelledCells,
    TableAnswersHead,
    check_tables,
    encoded_words,
)
from pipelines.parts.heads.token_rows import TokenRows
from pipelines.task_families.columns import lengths_of
from pipelines.task_families.encoding import EncodedExamples, FieldArrays, pad_rows
from pipelines.task_families.table_cells import is_numeric, nearest_rows
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.parts.heads import FeatureTokenizer
    from pipelines.task_families import Row, Task
    from pipelines.task_families.columns import Columns

TABLE_ROWS = Field.of_rows("table_rows")
"""int64 [B, R]: 1 for a row of a table, 0 for padding up to the table with the most rows."""
TOKEN_COLUMNS = Field.of_rows("token_columns")
"""int64 [B · R, L]: 0 for tokens of the question, the column from 1 for those of a cell, −1 for others."""
CELL_SLOTS = Field.of_rows("cell_slots")
"""int64 [B, K, 2]: row among those that are read, from 0, and column, from 1, of each of the `CELLS`; −1, 0 for
padding."""
_OTHER = -1


class VerticalTableHead(TableAnswersHead, name="vertical_table"):
    """As `cell_selection`, of a table whose rows are read one by one, each with the question, and then attended down.

    A cell is written as the name of its column, `text` or `real`, and its value; its vector is the mean of all these
    tokens. The rows that are read are those with the largest share of n-grams in common with the question (the content
    snapshot). Cells of other rows, and beyond the length of a row, cannot be selected, and are counted in the log.
    """

    paper = "arXiv:2005.08314"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, TABLE_ROWS, TOKEN_COLUMNS, CELL_SLOTS, CELLS})

    layers: int = Option(3, ge=0)
    """Number of vertical layers."""
    snapshot: int = Option(16, ge=1)
    """Maximum number of rows that are read; 3 in the paper, where a program computes over the whole table."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.vertical_attention import VerticalAttention

        config.vertical_layers = self.layers
        return VerticalAttention(config)

    def _inputs(self, batch: Batch, network: PreTrainedModel) -> dict[str, Any]:
        own = {str(name): batch[name] for name in (TABLE_ROWS, TOKEN_COLUMNS, CELL_SLOTS)}
        return backbone_inputs(batch, network) | own

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        check_tables(examples, task, answers=answers)
        snapshots = [nearest_rows(example["question"], example["rows"], self.snapshot) for example in examples]
        texts: list[tuple[list[str], list[str]]] = []
        columns: list[list[int]] = []
        for example, snapshot in zip(examples, snapshots, strict=True):
            kinds = ["real" if is_numeric(cells) else "text" for cells in zip(*example["rows"], strict=True)]
            for number in snapshot:
                words = _words_of_row(example["header"], kinds, example["rows"][number])
                texts.append((example["question"].split(), [word for word, _ in words]))
                columns.append([column for _, column in words])
        encodings = encoded_words(texts, tokenizer, length)
        tokens = [_token_columns(each, encoding) for each, encoding in zip(columns, encodings, strict=True)]
        counts = np.asarray([len(snapshot) for snapshot in snapshots], dtype=np.int64)
        firsts = np.cumsum(counts) - counts
        slots = [
            np.asarray(
                [(slot, column) for slot in range(count) for column in np.unique(tokens[first + slot]) if column > 0],
                dtype=np.int64,
            ).reshape(-1, 2)
            for first, count in zip(firsts, counts, strict=True)
        ]
        read = [
            np.stack([1 + np.asarray(snapshot)[each[:, 0]], each[:, 1]], axis=1)
            for snapshot, each in zip(snapshots, slots, strict=True)
        ]
        rows = TokenRows.of(encodings, tokenizer)
        return EncodedTableRows(
            examples, rows, counts, tokens, slots, LabelledCells.of(examples, read, answers=answers)
        )

    def check_encoded(self, encoded: EncodedExamples, length: int, features: Sequence[FeatureTokenizer]) -> None:
        assert isinstance(encoded, EncodedTableRows)
        total = sum(bool(cell.strip()) for example in encoded.examples for cells in example["rows"] for cell in cells)
        if missing := total - encoded.cell_count:
            logging.getLogger(__name__).warning(
                "%d of %d cells are not in the %d rows that are read of a table, or beyond %d tokens of one; they "
                "cannot be selected",
                *(missing, total, self.snapshot, length),
            )


class EncodedTableRows(RowGroups):
    """Encoded questions with tables, each an item of one row for each row of the table that is read.

    Args, besides those of RowGroups:
        tokens: int64 [L] for each row, as TOKEN_COLUMNS.
        slots: int64 [K, 2] for each table, as CELL_SLOTS.
        cells: the same cells by their row of the table.
    """

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        counts: NDArray[np.int64],
        tokens: Sequence[NDArray[np.int64]],
        slots: Sequence[NDArray[np.int64]],
        cells: LabelledCells,
    ) -> None:
        super().__init__(examples, rows, counts, TABLE_ROWS, None)
        self._tokens, self._slots, self._cells = tokens, slots, cells

    @property
    def cell_count(self) -> int:
        """Number of cells that are read, over all tables."""
        return int(lengths_of(self._slots).sum())

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        fields = {**super().collate(chosen), **self._cells.batch(chosen)}
        slots = [self._slots[item] for item in chosen]
        fields[CELL_SLOTS] = pad_rows(slots, 0)
        for row, each in enumerate(slots):
            fields[CELL_SLOTS][row, len(each) :, 0] = NO_CELL
        widest = fields[TABLE_ROWS].shape[1]
        tokens = np.full(fields[Field.INPUT_IDS].shape, _OTHER, dtype=np.int64)
        for item, first in zip(chosen, range(0, len(tokens), widest), strict=True):
            for number in range(self._counts[item]):
                row = self._tokens[self._firsts[item] + number]
                tokens[first + number, : len(row)] = row
        fields[TOKEN_COLUMNS] = tokens
        return fields

    def columns(self) -> Columns:
        own = {"token columns": self._tokens, "slots": self._slots}
        return {**super().columns(), **own, **self._cells.columns()}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> EncodedTableRows:
        rows, cells = self._rows.with_columns(columns), LabelledCells.of_columns(columns)
        return EncodedTableRows(examples, rows, columns["counts"], columns["token columns"], columns["slots"], cells)


def _words_of_row(header: Sequence[str], kinds: Sequence[str], cells: Sequence[str]) -> list[tuple[str, int]]:
    """Words of the cells of a row that are not empty, each with its column: its name, its kind and its value."""
    words = [
        (word, column)
        for column, (name, kind, cell) in enumerate(zip(header, kinds, cells, strict=True), 1)
        if cell.strip()
        for word in (*name.split(), "|", kind, "|", *cell.split(), ";")
    ]
    return words or [("|", _OTHER)]


def _token_columns(columns: Sequence[int], encoding: Any) -> NDArray[np.int64]:
    """int64 [L]: the column of each token, by `columns` of the words of its row; 0 for those of the question."""
    result = np.full(len(encoding.ids), _OTHER, dtype=np.int64)
    for token, (sequence, word) in enumerate(zip(encoding.sequence_ids, encoding.word_ids, strict=True)):
        if sequence is not None and word is not None:
            result[token] = columns[word] if sequence == TABLE else 0
    return result
