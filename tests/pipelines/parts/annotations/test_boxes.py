"""Every token of a word has the box of its word, in thousandths of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from pipelines.errors import DataError
from pipelines.parts.annotations.boxes import Boxes
from tests.pipelines.parts.annotations.tokenized_texts import by_word, joined, values_of, whole

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

WORDS = ["Registration", "No.", "(form", "533)", "北京", "大学"]
BOXES = [[10, 20, 110, 40], [120, 20, 150, 40], [0, 0, 0, 0], [700, 1000, 762, 1005], [1, 2, 3, 4], [5, 6, 7, 8]]
PAGE = [762, 1005]


@pytest.mark.parametrize("made", [joined, by_word])
def test_pieces_of_a_word_take_its_box(made: Callable[..., Any], tokenizer: PreTrainedTokenizerFast) -> None:
    text, tokens = made(WORDS, tokenizer, boxes=BOXES, page=PAGE)
    given = values_of(Boxes(), text)
    assert len(tokens) > len(WORDS) + 4, "words of several tokens"
    # by hand: 1000 · 10 / 762 = 13.1, 1000 · 20 / 1005 = 19.9, 1000 · 110 / 762 = 144.4, 1000 · 40 / 1005 = 39.8
    assert given[0].tolist() == [13, 19, 144, 39] and given[:3].tolist() == [given[0].tolist()] * 3
    spelt = [token.removeprefix("##") for token in tokens]
    word, rest = 0, WORDS[0].lower()
    for token, box in zip(spelt, given.tolist(), strict=True):
        if not rest:
            word, rest = word + 1, WORDS[word + 1].lower()
        expected = [int(1000 * (value / PAGE[axis % 2])) for axis, value in enumerate(BOXES[word])]
        assert box == expected, (token, WORDS[word])
        rest = rest.removeprefix(token) if token != "[UNK]" else rest[1:]
    assert word == len(WORDS) - 1


def test_a_page_without_a_size_reaches_as_far_as_its_boxes(tokenizer: PreTrainedTokenizerFast) -> None:
    text, _ = joined(["a", "b"], tokenizer, boxes=[[0, 0, 50, 10], [50, 10, 200, 40]], page=[])
    assert values_of(Boxes(), text).tolist() == [[0, 0, 250, 250], [250, 250, 1000, 1000]]


BAD = {
    "box outside the page": ({"boxes": [[0, 0, 9, 9], [0, 0, 101, 9]], "page": [100, 50]}, "word 1 lies outside"),
    "inverted": ({"boxes": [[0, 0, 9, 9], [9, 0, 8, 9]], "page": [100, 50]}, "of word 1 is inverted"),
    "fewer boxes": ({"boxes": [[0, 0, 9, 9]], "page": [100, 50]}, "holds 1 boxes for 2 words"),
    "three edges": ({"boxes": [[0, 0, 9, 9], [0, 0, 9]], "page": [100, 50]}, "word 1 is not four whole numbers x0, y0"),
    "a word as an edge": ({"boxes": [[0, 0, 9, "9"], [0, 0, 9, 9]], "page": [9, 9]}, "box [0, 0, 9, '9'] of word 0 is"),
    "no boxes": ({"page": [100, 50]}, "the column 'boxes' is missing or empty"),
    "no size": ({"boxes": [[0, 0, 9, 9]] * 2, "page": [100]}, "holds [100], expected width and height"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_named(case: str, tokenizer: PreTrainedTokenizerFast) -> None:
    columns, says = BAD[case]
    text, _ = joined(["a", "b"], tokenizer, **columns)
    with pytest.raises(DataError) as told:
        values_of(Boxes(), text)
    assert str(told.value).startswith("pages.parquet, row 7: ") and says in str(told.value)


def test_a_text_that_is_not_its_words_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    text, _ = whole("a  b", tokenizer, tokens=["a", "b"], boxes=[[0, 0, 1, 1]] * 2, page=[9, 9])
    with pytest.raises(DataError, match="row 7: its text is not the words of the column 'tokens', joined"):
        values_of(Boxes(), text)


def test_a_page_without_words_has_no_boxes(tokenizer: PreTrainedTokenizerFast) -> None:
    text, _ = joined([], tokenizer, boxes=[], page=[])
    assert values_of(Boxes(), text).shape == (0, 4) and np.array(Boxes().channels[0].edges).tolist() == [0, 1000]
