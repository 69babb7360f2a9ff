"""Base class of heads that answer questions about a table by its cells, or by what is computed of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from pipelines.errors import DataError, RecipeError
from pipelines.parts.heads import Batch, Head, Signals
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.token_rows import column
from pipelines.task_families.denotations import normalized
from pipelines.task_families.encoding import FieldArrays, pad_rows
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.table_cells import number_in
from pipelines.task_families.writing_systems import with_leading_spaces
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.columns import Columns
    from pipelines.task_families.encoding import EncodedExamples

CELLS = Field.of_rows("cells")
"""int64 [B, K, 2]: row, 0 for the header, and column, from 1, of each cell that has tokens; −1, 0 for padding."""
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


class TableAnswersHead(Head):
    """Answers of the most likely operator over cells of the most likely column."""

    provides = LAYERS | {CELL_LOGITS, COLUMN_LOGITS, OPERATOR_LOGITS}
    needs_abilities = frozenset({Ability.ONE_STACK, Ability.BIDIRECTIONAL})
    needs_ability_for = NEED_ABILITIES
    reads = frozenset({"table_questions"})
    labels = frozenset({ANSWER_CELLS, ANSWER_NUMBERS, CELL_NUMBERS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({CELL_LOGITS, COLUMN_LOGITS, OPERATOR_LOGITS})

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs = network(**self._inputs(batch, network), output_hidden_states=bool(LAYERS & requested))
        signals: dict[Signal, Any] = {
            CELL_LOGITS: outputs.cell_logits,
            COLUMN_LOGITS: outputs.column_logits,
            OPERATOR_LOGITS: outputs.operator_logits,
        }
        return signals | layer_signals(network, outputs, requested)

    @abstractmethod
    def _inputs(self, batch: Batch, network: PreTrainedModel) -> dict[str, Any]:
        """What the network reads of a batch."""

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
                texts = [table[number - 1][column_number - 1] for number, column_number in selected.tolist()]
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


def check_tables(examples: Sequence[Row], task: Task, *, answers: bool) -> None:
    """Raise DataError naming the first example with an error in its question, its table, or its answers."""
    for name in ("question", "header", "rows", *(("answers",) if answers else ())):
        column(examples, name)
    # of an example without an answer, all but that is checked
    family = task.family if answers else task.family.model_copy(update={"answers_from": "anything"})
    for index, example in enumerate(examples):
        if problem := family.problem(example if answers else {**example, "answers": ["?"]}):
            raise DataError(f"example {number_of(examples, index)}: {problem}")
        if not any(cell.strip() for cells in example["rows"] for cell in cells):
            raise DataError(f"example {number_of(examples, index)}: all cells of its table are empty; leave it out")


def encoded_words(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]], tokenizer: PreTrainedTokenizerFast, length: int
) -> list[Any]:
    """Encodings of the tokenizers library, of at most `length` tokens, of pairs of words.

    Those of a question, and of the table or the regions that it is about. The longer of a pair is truncated first.
    Raises RecipeError where `length` has no room for both.
    """
    fast = tokenizer.backend_tokenizer
    frame = fast.num_special_tokens_to_add(True)
    if length <= frame + 1:
        raise RecipeError(f"budget.length: {length} tokens have no room besides {frame} special tokens; raise it")
    fast.no_padding()
    fast.enable_truncation(length, strategy="longest_first")
    spaced = [(with_leading_spaces(question), with_leading_spaces(table)) for question, table in pairs]
    encodings: list[Any] = fast.encode_batch(spaced, is_pretokenized=True)
    fast.no_truncation()
    return encodings


class LabelledCells(NamedTuple):
    """The cells of tables that have tokens, and which of them are answers."""

    cells: Sequence[NDArray[np.int64]]
    """For each table int64 [K, 2]: row and column."""
    values: Sequence[NDArray[np.float32]] | None
    """For each table float32 [K, 2]: the number in each cell and 1 if it is an answer; None where answers are not
    known."""
    numbers: NDArray[np.float32] | None
    """float32 [tables, 2], as ANSWER_NUMBERS."""

    @classmethod
    def of(cls, examples: Sequence[Row], cells: Sequence[NDArray[np.int64]], *, answers: bool) -> Self:
        """The `cells` of the tables of `examples`."""
        if not answers:
            return cls(cells, None, None)
        values = [_values(example, each) for example, each in zip(examples, cells, strict=True)]
        numbers = [_number(example["answers"]) for example in examples]
        return cls(cells, values, np.asarray(numbers, dtype=np.float32).reshape(-1, 2))

    def batch(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """The fields of the tables `chosen`, padded to the one with the most cells."""
        cells = [self.cells[item] for item in chosen]
        fields: FieldArrays = {CELLS: pad_rows(cells, 0)}
        for row, each in enumerate(cells):
            fields[CELLS][row, len(each) :, 0] = NO_CELL
        if self.values is not None and self.numbers is not None:
            values = pad_rows([self.values[item] for item in chosen], 0)
            fields[CELL_NUMBERS] = np.ascontiguousarray(values[..., 0])
            fields[ANSWER_CELLS] = values[..., 1].astype(np.int64)
            fields[ANSWER_NUMBERS] = np.asarray(self.numbers)[chosen]
        return fields

    def columns(self) -> Columns:
        """What the fields are made of, by name."""
        answers: Columns = {} if self.values is None else {"values": self.values, "numbers": self.numbers}
        return {"cells": self.cells, **answers}

    @classmethod
    def of_columns(cls, columns: Columns) -> Self:
        """Those made of `columns`."""
        return cls(columns["cells"], columns.get("values"), columns.get("numbers"))


def _values(example: Row, cells: NDArray[np.int64]) -> NDArray[np.float32]:
    """float32 [K, 2]: the number in each cell, and 1 if its text is an answer and every answer is in a cell."""
    values = np.zeros((len(cells), 2), dtype=np.float32)
    expected = {normalized(answer) for answer in example["answers"]}
    read: set[str] = set()
    for index, (row, column_number) in enumerate(cells.tolist()):
        if row:
            cell = example["rows"][row - 1][column_number - 1]
            text = normalized(cell)
            values[index] = number_in(cell) or 0.0, text in expected
            read.add(text)
    if not expected <= read:
        values[:, 1] = 0
    return values


def _number(answers: Sequence[str]) -> tuple[float, float]:
    """1 and the number, of answers that are one number; 0, 0 of others."""
    number = number_in(answers[0]) if len(answers) == 1 else None
    return (0.0, 0.0) if number is None else (1.0, number)
