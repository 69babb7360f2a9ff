"""Answers to questions about a table: its cells, or what is computed of them (Herzig et al. 2020, TaPas)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.heads import Batch, backbone_inputs
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
from pipelines.task_families.table_cells import words_of_table
from pipelines.task_families.tokenized import RowTexts
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.parts.heads import FeatureTokenizer
    from pipelines.task_families import Row, Task
    from pipelines.task_families.columns import Columns

TOKEN_CELLS = Field.of_rows("token_cells")
"""int64 [B, L]: index of the cell of each token among `CELLS`, −1 for none."""


class CellSelectionHead(TableAnswersHead, name="cell_selection"):
    """Cells of one column of a table, and whether they are the answer or their sum, average or number is.

    The answer is that of the most likely operator over the cells of the most likely column with a probability of one
    half or more, or its most likely cell where there is none. The table is read as words, row by row, after the
    question; cells beyond the length of a row cannot be selected, and are counted in the log.
    """

    paper = "arXiv:2004.02349"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, TOKEN_CELLS, CELLS})
    annotates = True

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.cell_selector import CellSelector

        return CellSelector(config)

    def _inputs(self, batch: Batch, network: PreTrainedModel) -> dict[str, Any]:
        return backbone_inputs(batch, network) | {str(name): batch[name] for name in (TOKEN_CELLS, CELLS)}

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
        words = [[one.word for one in words_of_table(row["header"], row["rows"])] for row in examples]
        texts = [(row["question"].split(), each) for row, each in zip(examples, words, strict=True)]
        encodings = encoded_words(texts, tokenizer, length)
        names = [("question", "rows")] * len(examples)
        rows = TokenRows.of(
            encodings, tokenizer, RowTexts.of(task.annotations, examples, range(len(examples)), texts, names)
        )
        tables = [_table(example, encoding) for example, encoding in zip(examples, encodings, strict=True)]
        cells = LabelledCells.of(examples, [each for _, each in tables], answers=answers)
        return EncodedTables(examples, rows, [tokens for tokens, _ in tables], cells)

    def check_encoded(self, encoded: EncodedExamples, length: int, features: Sequence[FeatureTokenizer]) -> None:
        assert isinstance(encoded, EncodedTables)
        total = sum(
            bool(cell.strip())
            for example in encoded.examples
            for cells in (example["header"], *example["rows"])
            for cell in cells
        )
        if missing := total - encoded.cell_count:
            logging.getLogger(__name__).warning(
                "%d of %d cells are beyond %d tokens or have no token; they cannot be selected", missing, total, length
            )


class EncodedTables(EncodedExamples):
    """Encoded questions with tables, each an item; `tokens` are, for each, the cells of its tokens, int64 [L]."""

    def __init__(
        self, examples: Sequence[Row], rows: TokenRows, tokens: Sequence[NDArray[np.int64]], cells: LabelledCells
    ) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self.lengths = rows.lengths
        self._rows, self._tokens, self._cells = rows, tokens, cells

    @property
    def cell_count(self) -> int:
        """Number of cells that have tokens, over all tables, headers included."""
        return int(lengths_of(self._cells.cells).sum())

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """The questions `chosen` as rows, padded to the longest and to the table with the most cells."""
        tokens = pad_rows([self._tokens[item] for item in chosen], NO_CELL)
        return {**self._rows.batch(chosen.tolist()), TOKEN_CELLS: tokens, **self._cells.batch(chosen)}

    def columns(self) -> Columns:
        return {**self._rows.columns(), "token cells": self._tokens, **self._cells.columns()}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> EncodedTables:
        rows, cells = self._rows.with_columns(columns), LabelledCells.of_columns(columns)
        return EncodedTables(examples, rows, columns["token cells"], cells)


def _table(example: Row, encoding: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """int64 [L]: the cell of each token, NO_CELL for none; int64 [K, 2]: row and column of the cells with tokens."""
    words = words_of_table(example["header"], example["rows"])
    tokens = np.full(len(encoding.ids), NO_CELL, dtype=np.int64)
    cells: dict[tuple[int, int], int] = {}
    for token, (sequence, word) in enumerate(zip(encoding.sequence_ids, encoding.word_ids, strict=True)):
        if sequence == TABLE and word is not None:
            cell = words[word].row, words[word].column
            tokens[token] = cells.setdefault(cell, len(cells))
    return tokens, np.asarray([*cells], dtype=np.int64).reshape(-1, 2)
