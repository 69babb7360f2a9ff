"""Questions about tables: the loss against Hugging Face's TAPAS, and what is selected and computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast, TapasConfig, TapasForQuestionAnswering

from pipelines.errors import DataError
from pipelines.networks.cell_selector import CellScores
from pipelines.parts.annotations.table_cells import TableCells
from pipelines.parts.heads import backbone_inputs
from pipelines.parts.heads.cell_selection import TOKEN_CELLS, CellSelectionHead
from pipelines.parts.heads.table_answers import (
    ANSWER_CELLS,
    ANSWER_NUMBERS,
    CELL_LOGITS,
    CELL_NUMBERS,
    CELLS,
    COLUMN_LOGITS,
    OPERATOR_LOGITS,
    computed,
)
from pipelines.parts.objectives.cell_selection import CellSelection
from pipelines.task_families import Task, TaskFamily
from pipelines.task_families.table_cells import column_ranks, number_in
from pipelines.vocabulary import Field
from tests.pipelines.parts.heads.small_parts import answers_after_training, loss_of, small_network, task_of, tensors

TASK = task_of("table_questions")
HEADER = ["name", "words"]
ROWS = [["xml", "4"], ["json", "1,200"], ["file", "16"]]


def question(text: str, *answers: str, rows: list[list[str]] = ROWS) -> dict[str, Any]:
    return {"question": text, "table_id": "t", "header": HEADER, "rows": rows, "answers": list(answers)}


EXAMPLES = [
    question("which has the most words", "json"),
    question("how many words describe file", "16"),
    question("how many are there", "3"),
    question("which are not json", "xml", "file"),
]
LENGTH = 48


class Tables:
    """Four tables of three rows and two columns, in tokens that a TAPAS can read: two tokens to a cell."""

    rows, columns, tokens = 3, 2, 2
    question = 3

    def __init__(self) -> None:
        places = [(row, column) for row in range(1, self.rows + 1) for column in range(1, self.columns + 1)]
        self.places = torch.tensor(places)
        self.token_cells = torch.tensor([-1] * self.question + [*np.repeat(range(len(places)), self.tokens)])
        self.answers = torch.tensor([[0, 0, 1, 0, 1, 0], [0, 1, 0, 0, 0, 0], [0] * 6, [0, 0, 0, 0, 0, 1]])
        self.numbers = torch.tensor([0.0, 4.0, 0.0, 1.5, 0.0, 16.0]).expand(4, -1)
        self.known = torch.tensor([[0.0, 0.0], [1.0, 4.0], [1.0, 3.0], [1.0, 16.0]])

    def of_tokens(self, cells: torch.Tensor, outside: float) -> torch.Tensor:
        """[B, L] of [B, 6]: what a TAPAS reads for each token."""
        return torch.cat([torch.full((4, self.question), outside), cells.repeat_interleave(self.tokens, 1).float()], 1)

    def token_types(self) -> torch.Tensor:
        types = torch.zeros(4, len(self.token_cells), 7, dtype=torch.long)
        inside = self.token_cells >= 0
        types[:, inside, 2], types[:, inside, 1] = self.places[self.token_cells[inside]].T
        return types


@pytest.mark.parametrize("preference", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("cutoff", [None, 0.5])
def test_the_loss_is_that_of_tapas(preference: float, cutoff: float | None) -> None:
    tables = Tables()
    torch.manual_seed(3)
    config = TapasConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        type_vocab_sizes=[3, 8, 8, 2, 8, 8, 4], max_num_rows=8, max_num_columns=8, num_aggregation_labels=4,
        use_answer_as_supervision=True, select_one_column=True, allow_empty_column_selection=False, temperature=1.0,
        cell_selection_preference=preference, huber_loss_delta=0.3, answer_loss_cutoff=cutoff,
        init_cell_selection_weights_to_zero=False, initializer_range=0.5,
        aggregation_loss_weight=0.7, answer_loss_importance=1.3,
    )  # fmt: skip
    tapas = TapasForQuestionAnswering(config).eval()
    for bias in (tapas.output_bias, tapas.column_output_bias):
        torch.nn.init.constant_(bias, 0.2)
    ids = torch.randint(1, 50, (4, len(tables.token_cells)))
    inputs = {"input_ids": ids, "token_type_ids": tables.token_types()}
    expected = tapas(
        **inputs,
        labels=tables.of_tokens(tables.answers, 0.0).long(),
        float_answer=torch.where(tables.known[:, 0] > 0, tables.known[:, 1], torch.nan),
        numeric_values=tables.of_tokens(tables.numbers, torch.nan),
        numeric_values_scale=torch.full(ids.shape, float(tables.tokens)),
    )
    states, pooled = tapas.tapas(**inputs)[:2]
    scores = CellScores(config)
    with torch.no_grad():
        scores.cells.weight[0], scores.cells.bias[0] = tapas.output_weights, tapas.output_bias
        scores.columns.weight[0], scores.columns.bias[0] = tapas.column_output_weights, tapas.column_output_bias
    cells = tables.places.expand(4, -1, -1)
    cell_logits, column_logits = scores(states, tables.token_cells.expand(4, -1), cells)
    signals = {
        CELL_LOGITS: cell_logits,
        COLUMN_LOGITS: column_logits,
        OPERATOR_LOGITS: tapas.aggregation_classifier(pooled),
    }
    batch: Any = {
        CELLS: cells,
        CELL_NUMBERS: tables.numbers,
        ANSWER_CELLS: tables.answers,
        ANSWER_NUMBERS: tables.known,
    }
    objective = CellSelection(preference=preference, delta=0.3, cutoff=cutoff, operator_weight=0.7, number_weight=1.3)
    ours = loss_of(objective, batch, signals)
    torch.testing.assert_close(ours, expected.loss, rtol=1e-5, atol=1e-5)
    for mine, theirs in zip(
        torch.autograd.grad(ours, [scores.cells.weight, scores.columns.weight], retain_graph=True),
        torch.autograd.grad(expected.loss, [tapas.output_weights, tapas.column_output_weights]),
        strict=True,
    ):
        torch.testing.assert_close(mine[0], theirs, rtol=1e-4, atol=1e-5)


def test_a_column_is_scored_with_its_header_and_a_header_is_never_selected(tokenizer: PreTrainedTokenizerFast) -> None:
    head = CellSelectionHead()
    network: Any = small_network(head, TASK, tokenizer).double()
    batch = tensors(head.encode(EXAMPLES[:1], TASK, tokenizer, LENGTH), np.arange(1))
    signals = head.signals(network, batch, frozenset())
    states = network.base_model(**backbone_inputs(batch, network)).last_hidden_state
    of_tokens = network.scores.columns(states)[0, :, 0].detach().numpy()
    cells, tokens = batch[CELLS][0].numpy(), batch[TOKEN_CELLS][0].numpy()
    assert cells[:8].tolist() == [[row, column] for row in range(4) for column in (1, 2)]
    for column in (1, 2):
        means = [of_tokens[tokens == index].mean() for index in np.flatnonzero(cells[:, 1] == column)]
        assert signals[COLUMN_LOGITS][0, column - 1].item() == pytest.approx(np.mean(means), rel=1e-9)
    assert (signals[CELL_LOGITS][0, :2] < -1000).all()


def test_cells_are_labelled_by_their_texts_and_numbers(tokenizer: PreTrainedTokenizerFast) -> None:
    examples = [*EXAMPLES, question("which are left", "xml", "nothing"), question("how much", "1200")]
    batch = tensors(CellSelectionHead().encode(examples, TASK, tokenizer, LENGTH), np.arange(6))
    selected = [
        [tuple(place) for place, label in zip(places.tolist(), labels, strict=True) if label]
        for places, labels in zip(batch[CELLS], batch[ANSWER_CELLS].tolist(), strict=True)
    ]
    assert selected == [[(2, 1)], [(3, 2)], [], [(1, 1), (3, 1)], [], []]
    assert batch[ANSWER_NUMBERS].tolist() == [[0, 0], [1, 16], [1, 3], [0, 0], [0, 0], [1, 1200]]
    assert batch[CELL_NUMBERS][0, :8].tolist() == [0, 0, 0, 4, 0, 1200, 0, 16]
    assert CellSelection().counts(batch, None) == {"cell_selection": 5}  # type: ignore[arg-type]  # reads no network


def test_training_learns_cells_and_operators_from_answers(tokenizer: PreTrainedTokenizerFast) -> None:
    head = CellSelectionHead()
    network = small_network(head, TASK, tokenizer)
    # of several sizes and without numbers, so that no mixture of operators explains all of them
    counts = [question("how many are there", str(size), rows=[["xml", "file"]] * size) for size in (1, 2, 3, 4)]
    examples = [EXAMPLES[0], EXAMPLES[1], EXAMPLES[3], *counts]
    encoded = head.encode(examples, TASK, tokenizer, LENGTH)
    objective = CellSelection(preference=0.9)
    answers = answers_after_training(head, objective, network, encoded, TASK, tokenizer, 200)
    assert answers == [example["answers"] for example in examples]


def test_rows_columns_and_ranks_are_those_of_the_cells(tokenizer: PreTrainedTokenizerFast) -> None:
    task = Task(TaskFamily.model_validate("table_questions"), (), (TableCells(),))
    batch = tensors(CellSelectionHead().encode(EXAMPLES[:1], task, tokenizer, LENGTH), np.arange(1))
    channel = batch[Field("table_cells")][0]
    tokens = batch[TOKEN_CELLS][0]
    assert not channel[tokens < 0].any()
    for index, (row, column) in enumerate(batch[CELLS][0, :8].tolist()):
        ranks = {(1, 2): [1, 3], (2, 2): [3, 1], (3, 2): [2, 2]}.get((row, column), [0, 0])
        assert {tuple(value) for value in channel[tokens == index].tolist()} == {(row, column, *ranks)}


def test_ranks_are_of_columns_of_numbers_alone() -> None:
    assert column_ranks([["3", "a", ""], ["$1,000", "2", "7%"], ["3", "1", ""]]).tolist() == [
        [[1, 2], [0, 0], [0, 0]],
        [[2, 1], [0, 0], [1, 1]],
        [[1, 2], [0, 0], [0, 0]],
    ]
    assert [number_in(text) for text in ("-2.5", "1_0", "nan", "inf", "", "4 of 5")] == [-2.5, *[None] * 5]


def test_operators_compute_texts_and_numbers() -> None:
    texts = ["4", "1,200", "4", "x"]
    results = [computed(operator, texts) for operator in ("none", "sum", "average", "count")]
    assert results == [["4", "1,200", "x"], ["1208"], ["302"], ["4"]]


def test_rows_that_were_stored_are_the_same_batch(tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = CellSelectionHead().encode(EXAMPLES, TASK, tokenizer, LENGTH)
    again = encoded.with_columns(EXAMPLES, encoded.columns())
    first, second = (each.collate(np.asarray([1, 0])) for each in (encoded, again))
    assert first.keys() == second.keys() and all((first[name] == second[name]).all() for name in first)


def test_a_question_without_an_answer_is_read_whatever_answers_may_be(tokenizer: PreTrainedTokenizerFast) -> None:
    task = Task(TaskFamily.model_validate({"name": "table_questions", "answers_from": "cells"}), ())
    without = {name: value for name, value in EXAMPLES[0].items() if name != "answers"}
    batch = tensors(CellSelectionHead().encode([without], task, tokenizer, LENGTH, answers=False), np.arange(1))
    assert CELLS in batch and ANSWER_CELLS not in batch


def test_cells_beyond_the_row_are_counted(tokenizer: PreTrainedTokenizerFast, caplog: pytest.LogCaptureFixture) -> None:
    head = CellSelectionHead()
    long = question("which", "json", rows=ROWS * 20)
    encoded = head.encode([long], TASK, tokenizer, LENGTH)
    head.check_encoded(encoded, LENGTH, ())
    assert "of 122 cells are beyond 48 tokens" in caplog.text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rows": None}, "example 1: the column 'rows' is missing or empty"),
        ({"rows": [["xml"]]}, "example 1: the column 'rows' holds 1 cells in row 1, the header 2"),
        ({"header": [" ", ""], "rows": [["", ""]]}, "example 1: all cells of its table are empty"),
    ],
)
def test_an_example_that_lacks_something_is_refused_with_its_number(
    change: dict[str, object], says: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    with pytest.raises(DataError, match=says):
        CellSelectionHead().encode([EXAMPLES[1], {**EXAMPLES[0], **change}], TASK, tokenizer, LENGTH)
