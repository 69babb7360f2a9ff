"""What the data says of each word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.parts.annotations.word_column import WordColumn
from tests.pipelines.parts.annotations.tokenized_texts import by_word, joined, values_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

WORDS = ["logging", "an", "astonishing"]


def test_names_are_numbered_and_unlisted_ones_are_none(tokenizer: PreTrainedTokenizerFast) -> None:
    part = WordColumn(channel="part_of_speech", column="tags", values=("DET", "NOUN"))
    assert part.channels[0].size == 3 and part.channels[0].edges == (0, 0)
    text, _ = joined(WORDS, tokenizer, tags=["VERB", "DET", "NOUN"])
    values = values_of(part, text).tolist()
    assert values[0] == 0 and values[-1] == 2 and values.count(1) == 1 and values == sorted(values)


def test_numbers_are_kept_up_to_the_largest(tokenizer: PreTrainedTokenizerFast) -> None:
    part = WordColumn(channel="ranks", column="ranks", largest=3)
    text, tokens = by_word(WORDS, tokenizer, ranks=[0, 2, 9])
    assert text.words is not None
    assert values_of(part, text).tolist() == [[0, 2, 3][word] for word in text.words] and len(tokens) > 3


def test_bad_rows_and_options_are_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    part = WordColumn(channel="ranks", column="ranks", largest=3)
    for ranks, says in (([1, 2], "holds 2 values for 3 words"), ([1, 2, -1], "has the value -1, outside its range")):
        with pytest.raises(DataError, match=f"example 7: .*{says}"):
            values_of(part, by_word(WORDS, tokenizer, ranks=ranks)[0])
    for options in ({}, {"values": ["a"], "largest": 3}):
        with pytest.raises(ValidationError, match="give values, for a column of names, or largest"):
            Annotation.model_validate({"name": "word_column", "channel": "ranks", "column": "ranks", **options})
