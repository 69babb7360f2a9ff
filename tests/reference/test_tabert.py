"""Tables read row by row: means of cells, vertical attention and scores against the equations in float64."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.nn.functional import gelu, layer_norm
from transformers import BertModel, PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.networks.vertical_attention import VerticalAttention
from pipelines.parts.heads.table_answers import (
    ANSWER_CELLS,
    CELL_LOGITS,
    CELLS,
    COLUMN_LOGITS,
    OPERATOR_LOGITS,
)
from pipelines.parts.heads.vertical_table import CELL_SLOTS, TABLE_ROWS, TOKEN_COLUMNS, VerticalTableHead
from pipelines.parts.objectives.cell_selection import CellSelection
from pipelines.task_families.table_cells import nearest_rows
from tests.pipelines.parts.heads.small_parts import answers_after_training, small_network, tensors
from tests.reference.test_tapas import EXAMPLES, ROWS, TASK, question

LENGTH = 40
TWO = [EXAMPLES[0], question("which is json", "json", rows=ROWS[:2])]


def attended(states: torch.Tensor, layer: torch.nn.TransformerEncoderLayer) -> torch.Tensor:
    """[R, H]: a layer of Vaswani et al. 2017 over `states` [R, H]."""
    attention = layer.self_attn
    size = states.shape[1] // attention.num_heads
    query, key, value = (states @ attention.in_proj_weight.T + attention.in_proj_bias).chunk(3, dim=1)
    heads = [
        torch.softmax(query[:, part] @ key[:, part].T / size**0.5, dim=1) @ value[:, part]
        for part in (slice(first, first + size) for first in range(0, states.shape[1], size))
    ]
    hidden = states + attention.out_proj(torch.cat(heads, dim=1))
    hidden = layer_norm(hidden, hidden.shape[1:], layer.norm1.weight, layer.norm1.bias)
    inner = hidden + layer.linear2(gelu(layer.linear1(hidden)))
    return layer_norm(inner, inner.shape[1:], layer.norm2.weight, layer.norm2.bias)


def test_cells_are_means_of_their_tokens_that_attend_to_those_of_their_column(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    head = VerticalTableHead(layers=2)
    network = cast("VerticalAttention", small_network(head, TASK, tokenizer).double())
    batch = tensors(head.encode(TWO, TASK, tokenizer, LENGTH), np.arange(2))
    signals = head.signals(network, batch, frozenset())
    backbone = cast("BertModel", network.base_model)
    assert batch[TABLE_ROWS].tolist() == [[1, 1, 1], [1, 1, 0]]
    for table, example in enumerate(TWO):
        columns: list[list[torch.Tensor]] = [[], [], []]
        for name, words in example["rows"]:
            text = ["name", "|", "text", "|", name, ";", "words", "|", "real", "|", words, ";"]
            pair = tokenizer(example["question"].split(), text, is_split_into_words=True, return_tensors="pt")
            states = backbone(**pair).last_hidden_state[0]
            of_words = [*zip(pair.sequence_ids(0), pair.word_ids(0), strict=True)]
            for column, belongs in enumerate((range(0), range(6), range(6, 12))):
                inside = [text == 1 and word in belongs if column else text == 0 for text, word in of_words]
                columns[column].append(states[torch.tensor(inside)].mean(0))
        vertical = []
        for each in columns:
            states = torch.stack(each)
            for layer in network.vertical:
                states = attended(states, cast("torch.nn.TransformerEncoderLayer", layer))
            vertical.append(states)
        torch.testing.assert_close(signals[OPERATOR_LOGITS][table], network.operators(vertical[0].mean(0)))
        for column in (1, 2):
            expected = network.columns(vertical[column].mean(0))
            torch.testing.assert_close(signals[COLUMN_LOGITS][table, column - 1 : column], expected)
        for index, (row, column) in enumerate(batch[CELLS][table].tolist()):
            if row > 0:
                expected = network.cells(vertical[column][row - 1])
                torch.testing.assert_close(signals[CELL_LOGITS][table, index : index + 1], expected)


def test_the_order_of_rows_moves_cells_and_nothing_else(tokenizer: PreTrainedTokenizerFast) -> None:
    head = VerticalTableHead(layers=1)
    network = small_network(head, TASK, tokenizer).double()
    first, second = (
        head.signals(network, tensors(head.encode([one], TASK, tokenizer, LENGTH), np.arange(1)), frozenset())
        for one in (EXAMPLES[0], {**EXAMPLES[0], "rows": ROWS[::-1]})
    )
    for name in (COLUMN_LOGITS, OPERATOR_LOGITS):
        torch.testing.assert_close(first[name], second[name])
    cells, moved = (one[CELL_LOGITS][0, :6].view(3, 2) for one in (first, second))
    torch.testing.assert_close(cells, moved.flip(0))


def test_the_snapshot_has_the_rows_with_most_of_the_question(tokenizer: PreTrainedTokenizerFast) -> None:
    rows = [["a b", "c"], ["Json file", "x"], ["json", "which file"], ["d", "e"]]
    assert nearest_rows("which json file", rows, 2) == [1, 2]
    assert nearest_rows("nothing", rows, 2) == [0, 1] and nearest_rows("which", rows, 9) == [0, 1, 2, 3]
    head = VerticalTableHead(snapshot=2)
    example = question("which json file", "json", rows=rows)
    batch = tensors(head.encode([example], TASK, tokenizer, LENGTH), np.arange(1))
    assert batch[CELLS][0, :4].tolist() == [[2, 1], [2, 2], [3, 1], [3, 2]]
    assert batch[CELL_SLOTS][0, :4].tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert batch[ANSWER_CELLS][0, :4].tolist() == [0, 0, 1, 0]


def test_empty_cells_have_no_tokens_and_are_not_selected(tokenizer: PreTrainedTokenizerFast) -> None:
    head = VerticalTableHead()
    example = question("which", "json", rows=[["", ""], ["json", ""]])
    batch = tensors(head.encode([example], TASK, tokenizer, LENGTH), np.arange(1))
    assert batch[CELLS][0, :1].tolist() == [[2, 1]] and (batch[CELLS][0, 1:, 0] == -1).all()
    assert set(batch[TOKEN_COLUMNS].flatten().tolist()) == {-1, 0, 1}
    signals = head.signals(small_network(head, TASK, tokenizer), batch, frozenset())
    assert all(bool(signals[name].isfinite().all()) for name in (CELL_LOGITS, COLUMN_LOGITS, OPERATOR_LOGITS))


def test_training_learns_cells_and_counts_from_answers(tokenizer: PreTrainedTokenizerFast) -> None:
    head = VerticalTableHead(layers=1)
    network = small_network(head, TASK, tokenizer)
    counts = [question("how many are there", str(size), rows=[["xml", "file"]] * size) for size in (1, 2, 3, 4)]
    examples = [EXAMPLES[0], EXAMPLES[1], EXAMPLES[3], *counts]
    encoded = head.encode(examples, TASK, tokenizer, LENGTH)
    answers = answers_after_training(head, CellSelection(preference=0.9), network, encoded, TASK, tokenizer, 150)
    assert answers == [example["answers"] for example in examples]


def test_rows_that_were_stored_are_the_same_batch(tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = VerticalTableHead().encode(TWO, TASK, tokenizer, LENGTH)
    again = encoded.with_columns(TWO, encoded.columns())
    first, second = (each.collate(np.asarray([1, 0])) for each in (encoded, again))
    assert first.keys() == second.keys() and all((first[name] == second[name]).all() for name in first)


def test_cells_that_are_not_read_are_counted(
    tokenizer: PreTrainedTokenizerFast, caplog: pytest.LogCaptureFixture
) -> None:
    head: Any = VerticalTableHead(snapshot=2)
    head.check_encoded(head.encode([EXAMPLES[0]], TASK, tokenizer, LENGTH), LENGTH, ())
    assert "2 of 6 cells are not in the 2 rows that are read of a table, or beyond 40 tokens of one" in caplog.text


def test_an_example_that_lacks_something_is_refused_with_its_number(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(DataError, match="example 1: the column 'rows' holds 1 cells in row 1, the header 2"):
        VerticalTableHead().encode([EXAMPLES[1], {**EXAMPLES[0], "rows": [["x"]]}], TASK, tokenizer, LENGTH)
