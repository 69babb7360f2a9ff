"""Words in sentences: where they stand, what a file of senses may hold, and states beside transformers' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.errors import DataError
from pipelines.judging.occurrences import Occurrence, cosines, occurrence_states, read_senses, word_spans
from pipelines.models.backbone import open_backbone
from tests.pipelines.judging.evaluations.conftest import Trained

GOOD = "".join(
    f"bank\t{sense}\t{text}\n"
    for sense, text in [
        ("river", "By the bank of it."),
        ("river", "A bank, wet."),
        ("money", "The bank lends."),
        ("money", "A bank pays."),
    ]
)


@pytest.mark.parametrize(
    ("word", "text", "spans"),
    [
        ("play", "The player will Play a play.", [(16, 20), (23, 27)]),
        ("苹果", "这些苹果汁", [(2, 4)]),
        ("élan", "un élan, élancé", [(3, 7)]),
        ("c++", "c++ and c", [(0, 3)]),
        ("key", "", []),
    ],
)
def test_a_word_is_whole_where_scripts_have_spaces(word: str, text: str, spans: list[tuple[int, int]]) -> None:
    assert word_spans(word, text) == spans


def test_a_file_of_senses_is_read(tmp_path: Path) -> None:
    path = tmp_path / "senses.tsv"
    path.write_text(f"# word, sense, sentence\n\n{GOOD}")
    read = read_senses(path)
    assert [one.sense for one in read] == ["river", "river", "money", "money"]
    assert all(one.text[one.start : one.end] == "bank" for one in read)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no sentences; write lines of word, sense and sentence"),
        (f"{GOOD}bank\triver\n", "line 5: expected word, sense and sentence, separated by tabs"),
        (f"{GOOD}bank\t\tA bank.\n", "line 5: expected word, sense and sentence, separated by tabs"),
        (f"{GOOD}bank\triver\tNo banker.\n", "line 5: 'bank' stands 0 times in the sentence; it must stand there once"),
        (f"{GOOD}bank\triver\tBank by bank.\n", "line 5: 'bank' stands 2 times in the sentence"),
        (f"{GOOD}bank\tgame\tHe held the bank.\n", "line 5: 'bank' has one sentence in the sense 'game'; it needs two"),
        ("key\tlock\tA key.\nkey\tlock\tThe key.\n", "line 1: 'key' has sentences in one sense only; it needs two"),
    ],
)
def test_a_bad_file_of_senses_is_named_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "senses.tsv"
    path.write_text(text)
    with pytest.raises(DataError) as error:
        read_senses(path)
    assert str(error.value).startswith(str(path)) and message in str(error.value)
    with pytest.raises(DataError, match="no such file"):
        read_senses(tmp_path / "missing.tsv")


def test_states_are_those_of_transformers_for_the_pieces_of_the_word(trained: Trained) -> None:
    folder = trained.first("classify").folder
    backbone, tokenizer = open_backbone(folder)
    texts = [
        "Return the eigenvalues of a matrix.",
        "A short matrix",
        "Compute the transform of matrix x",
    ]
    spans = [word_spans("matrix", text)[0] for text in texts]
    occurrences = [Occurrence("matrix", text, *span) for text, span in zip(texts, spans, strict=True)]
    states = occurrence_states(backbone, tokenizer, occurrences)
    for row, (text, (start, end)) in enumerate(zip(texts, spans, strict=True)):
        encoded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        pieces = [
            index
            for index, (first, after) in enumerate(encoded.pop("offset_mapping")[0].tolist())
            if first < end and after > start and after > first
        ]
        encoded.pop("token_type_ids", None)
        with torch.no_grad():
            layers = backbone(**encoded, output_hidden_states=True).hidden_states
        assert len(layers) == len(states)
        for layer, state in zip(layers, states, strict=True):
            np.testing.assert_allclose(state[row], layer[0, pieces].mean(0).numpy(), atol=2e-5)


def test_a_word_beyond_the_longest_row_has_a_state_of_zeros(trained: Trained) -> None:
    folder = trained.first("classify").folder
    text = "word " * 2000 + "matrix"
    far = Occurrence("matrix", text, len(text) - 6, len(text))
    near = Occurrence("matrix", "A matrix", 2, 8)
    states = occurrence_states(*open_backbone(folder), [far, near])
    assert not states[-1][0].any() and states[-1][1].any()


def test_cosines_of_zeros_are_zero() -> None:
    states = np.asarray([[3.0, 4.0], [0.0, 0.0], [-3.0, -4.0]], dtype=np.float32)
    np.testing.assert_allclose(cosines(states, states), [[1, 0, -1], [0, 0, 0], [-1, 0, 1]], atol=1e-6)
