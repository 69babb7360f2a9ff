"""Answers to questions about a table: its cells, or what is computed of them (Herzig et al. 2020, TaPas)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipelines.errors import DataError, RecipeError
from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.token_rows import TokenRows, column
from pipelines.task_families.denotations import normalized
from pipelines.task_families.encoding import EncodedExamples, FieldArrays, pad_rows
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.table_cells import number_in, words_of_table
from pipelines.task_families.tokenized import RowTexts
from pipelines.task_families.writing_systems import with_leading_spaces
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.parts.heads import FeatureTokenizer
    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.columns import Columns

CELLS = Field.of_rows("cells")
"""int64 [B, K, 2]: row, 0 for the header, and column, from 1, of each cell that has tokens; −1, 0 for padding."""
TOKEN_CELLS = Field.of_rows("token_cells")
"""int64 [B, L]: index of the cell of each token among `CELLS`, −1 for none."""
CELL_NUMBERS = Field.of_rows("cell_numbers")
"""float32 [B, K]: the number in each cell, 0 for a text."""
ANSWER_CELLS = Field.of_rows("answer_cells")
"""int64 [B, K]: 1 for cells whose text is an answer; all 0 where not every answer is in a cell that is read."""
ANSWER_NUMBERS = Field.of_rows("answer_numbers")
"""float32 [B, 2]: 1 and the answer where it is one number; 0 and 0 elsewhere."""
CELL_LOGITS = Signal.of_head("cell_logits")
"""[B, K]: logit that each cell is selected, if its column is."""
COLUMN_LOGITS = Signal.of_head("column_logits")
"""[B, C]: logit of each column."""
OPERATOR_LOGITS = Signal.of_head("operator_logits")
"""[B, 4]: logit of the cells as they are, and of their sum, average and number."""
NO_CELL = -1
TABLE = 1
"""Sequence id of the table in the encoded pair (question, table)."""


class CellSelectionHead(Head, name="cell_selection"):
    """Cells of one column of a table, and whether they are the answer or their sum, average or number is.

    The answer is that of the most likely operator over the cells of the most likely column with a probability of one
    half or more, or its most likely cell where there is none. The table is read as words, row by row, after the
    question; cells beyond the length of a row cannot be selected, and are counted in the log.
    """

    paper = "arXiv:2004.02349"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, TOKEN_CELLS, CELLS})
    provides = LAYERS | {CELL_LOGITS, COLUMN_LOGITS, OPERATOR_LOGITS}
    needs_abilities = frozenset({Ability.ONE_STACK, Ability.BIDIRECTIONAL})
    needs_ability_for = NEED_ABILITIES
    reads = frozenset({"table_questions"})
    labels = frozenset({ANSWER_CELLS, ANSWER_NUMBERS, CELL_NUMBERS})
    annotates = True
    answers_from: ClassVar[frozenset[Signal]] = frozenset({CELL_LOGITS, COLUMN_LOGITS, OPERATOR_LOGITS})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.cell_selector import CellSelector

        return CellSelector(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        inputs = backbone_inputs(batch, network) | {str(name): batch[name] for name in (TOKEN_CELLS, CELLS)}
        outputs = network(**inputs, output_hidden_states=bool(LAYERS & requested))
        signals: dict[Signal, Any] = {
            CELL_LOGITS: outputs.cell_logits,
            COLUMN_LOGITS: outputs.column_logits,
            OPERATOR_LOGITS: outputs.operator_logits,
        }
        return signals | layer_signals(network, outputs, requested)

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        for name in ("question", "header", "rows", *(("answers",) if answers else ())):
            column(examples, name)
        texts = []
        for index, example in enumerate(examples):
            if problem := task.family.problem({**example, **({} if answers else {"answers": ["?"]})}):
                raise DataError(f"example {number_of(examples, index)}: {problem}")
            words = [one.word for one in words_of_table(example["header"], example["rows"])]
            if not words:
                raise DataError(f"example {number_of(examples, index)}: all cells of its table are empty; leave it out")
            texts.append((example["question"].split(), words))
        fast = tokenizer.backend_tokenizer
        frame = fast.num_special_tokens_to_add(True)
        if length <= frame + 1:
            raise RecipeError(f"budget.length: {length} tokens have no room besides {frame} special tokens; raise it")
        fast.no_padding()
        fast.enable_truncation(length, strategy="longest_first")
        pairs = [(with_leading_spaces(question), with_leading_spaces(words)) for question, words in texts]
        encodings = fast.encode_batch(pairs, is_pretokenized=True)
        fast.no_truncation()
        names = [("question", "rows")] * len(examples)
        sources = RowTexts.of(task.annotations, examples, range(len(examples)), texts, names)
        rows = TokenRows.of(encodings, tokenizer, sources)
        tables = [_table(example, encoding) for example, encoding in zip(examples, encodings, strict=True)]
        labels = [_labels(example, cells) for example, (_, cells) in zip(examples, tables, strict=True)]
        return EncodedTables(examples, rows, tables, labels if answers else None)

    def check_encoded(self, encoded: EncodedExamples, length: int, features: Sequence[FeatureTokenizer]) -> None:
        assert isinstance(encoded, EncodedTables)
        sizes = [
            sum(bool(cell.strip()) for cells in [example["header"], *example["rows"]] for cell in cells)
            for example in encoded.examples
        ]
        if missing := sum(sizes) - encoded.cell_count:
            logging.getLogger(__name__).warning(
                "%d of %d cells are beyond %d tokens or have no token; they cannot be selected",
                *(missing, sum(sizes), length),
            )

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        from pipelines.networks.cell_selector import OPERATORS

        answers: list[Answer] = [[] for _ in encoded.examples]
        for chosen, batch, signals in outputs:
            cells, logits = (np.asarray(one.tolist()) for one in (batch[CELLS], signals[CELL_LOGITS].float()))
            columns, operators = (signals[name].argmax(-1).tolist() for name in (COLUMN_LOGITS, OPERATOR_LOGITS))
            for row, item in enumerate(chosen):
                of_column = (cells[row, :, 0] > 0) & (cells[row, :, 1] == columns[row] + 1)
                if not of_column.any():
                    continue
                scores = np.where(of_column, logits[row], -np.inf)
                selected = cells[row, np.flatnonzero(scores >= min(0.0, scores.max()))]
                table = encoded.examples[item]["rows"]
                texts = [table[number - 1][of - 1] for number, of in selected.tolist()]
                answers[item] = computed(OPERATORS[operators[row]], texts)
        return answers


def computed(operator: str, texts: Sequence[str]) -> list[str]:
    """What `operator` makes of the texts of cells: themselves, each once, or one number. A text that is no number
    counts as 0."""
    if operator == "none":
        return list(dict.fromkeys(texts))
    total = sum(number_in(text) or 0.0 for text in texts)
    value = {"sum": total, "average": total / len(texts), "count": float(len(texts))}[operator]
    return [format(value, ".10g")]


class EncodedTables(EncodedExamples):
    """Encoded questions with tables, each an item.

    Args:
        tables: for each, int64 [L], the cell of each token, and int64 [K, 2], row and column of the cells.
        labels: for each, float32 [K, 2], the number in each cell and 1 if it is an answer, and float32 [2], as
            ANSWER_NUMBERS; None where answers are not known.
    """

    def __init__(
        self,
        examples: Sequence[Row],
        rows: TokenRows,
        tables: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
        labels: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]] | None,
    ) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self.lengths = rows.lengths
        self._rows, self._tables, self._labels = rows, tables, labels

    @property
    def cell_count(self) -> int:
        """Number of cells that have tokens, over all tables, headers included."""
        return sum(len(cells) for _, cells in self._tables)

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """The questions `chosen` as rows, padded to the longest and to the table with the most cells."""
        fields = self._rows.batch(chosen.tolist())
        tokens, cells = zip(*(self._tables[item] for item in chosen), strict=True)
        fields[TOKEN_CELLS] = pad_rows(tokens, NO_CELL)
        fields[CELLS] = pad_rows(cells, 0)
        for row, each in enumerate(cells):
            fields[CELLS][row, len(each) :, 0] = NO_CELL
        if self._labels is not None:
            values, numbers = zip(*(self._labels[item] for item in chosen), strict=True)
            padded = pad_rows(values, 0)
            fields[CELL_NUMBERS] = np.ascontiguousarray(padded[..., 0])
            fields[ANSWER_CELLS] = padded[..., 1].astype(np.int64)
            fields[ANSWER_NUMBERS] = np.stack(numbers)
        return fields

    def columns(self) -> Columns:
        tokens, cells = ([table[part] for table in self._tables] for part in (0, 1))
        labels: Columns = {}
        if self._labels is not None:
            labels = {
                "values": [values for values, _ in self._labels],
                "numbers": np.asarray([number for _, number in self._labels], dtype=np.float32).reshape(-1, 2),
            }
        return {**self._rows.columns(), "token cells": tokens, "cells": cells, **labels}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> EncodedTables:
        tables = [*zip(columns["token cells"], columns["cells"], strict=True)]
        labels = [*zip(columns["values"], columns["numbers"], strict=True)] if "values" in columns else None
        return EncodedTables(examples, self._rows.with_columns(columns), tables, labels)


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


def _labels(example: Row, cells: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """float32 [K, 2]: the number in each cell and 1 if its text is an answer; float32 [2]: as ANSWER_NUMBERS."""
    values = np.zeros((len(cells), 2), dtype=np.float32)
    answers: Sequence[str] = example.get("answers") or []
    expected = {normalized(answer) for answer in answers}
    seen: set[str] = set()
    for index, (row, column_number) in enumerate(cells.tolist()):
        if row:
            text = example["rows"][row - 1][column_number - 1]
            is_answer = normalized(text) in expected
            values[index] = number_in(text) or 0.0, is_answer
            seen |= {normalized(text)} if is_answer else set()
    if seen != expected:
        values[:, 1] = 0
    number = number_in(answers[0]) if len(answers) == 1 else None
    return values, np.asarray((0, 0) if number is None else (1, number), dtype=np.float32)
