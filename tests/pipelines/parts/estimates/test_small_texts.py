"""Texts from which no n-grams can be counted, and thresholds that cut shorter n-grams than longer ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import DataError
from pipelines.networks.ngram import NgramConfig
from pipelines.parts.estimates import TokenFile, Workspace
from pipelines.parts.estimates.kneser_ney import KneserNey
from pipelines.parts.tokenizers.words import Words

SIZE, END = 6, 0


def text_of(documents: list[list[int]], folder: Path) -> TokenFile:
    ids = np.asarray([token for one in documents for token in (*one, END)], dtype=np.uint16)
    ids.tofile(folder / "tokens.bin")
    return TokenFile(folder / "tokens.bin", "uint16", tuple(np.bincount(ids, minlength=SIZE).tolist()), END, (END,))


@pytest.mark.parametrize(
    ("documents", "order", "words"),
    [
        ([], 2, "no tokens to count"),
        ([[1, 2], [3]], 5, r"order: 5 is above the length of the text: its longest document has 4 tokens"),
        ([[1, 2, 3, 4]] * 3, 7, r"longest document has 6 tokens"),
        ([[2, 2, 2], [2]], 2, r"the text has 1 word of the vocabulary"),
        ([[], []], 2, r"the text has no words of the vocabulary"),
    ],
)
def test_a_text_without_ngrams_is_one_sentence_before_anything_is_counted(
    documents: list[list[int]], order: int, words: str, tmp_path: Path
) -> None:
    def counts(*_: object) -> list[Path]:
        raise AssertionError("nothing is to be counted")

    with pytest.raises(DataError, match=words) as refused:
        KneserNey().weights(
            text_of(documents, tmp_path), NgramConfig(vocab_size=SIZE, order=order), Workspace(tmp_path, counts)
        )
    assert "\n" not in str(refused.value) and [path.name for path in tmp_path.iterdir()] == ["tokens.bin"]


@pytest.mark.parametrize("prune", [[1], [0, 2, 1], [0, 0, -1]])
def test_thresholds_do_not_fall_from_order_to_order(prune: list[int]) -> None:
    with pytest.raises(ValueError, match="prune: .*begin with 0"):
        KneserNey.model_validate({"prune": prune})


@pytest.mark.parametrize(
    ("text", "words"), [("go go go go go", "1 word of the text occurs 3 times"), ("a b", "no words")]
)
def test_a_vocabulary_of_one_word_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(DataError, match=f"{words}.* a vocabulary needs two; .*lower min_count"):
        Words(min_count=3).train([text])
