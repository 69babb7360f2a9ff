"""Capitals, repeated words and single values beside tokens, as ERNIE 2.0 reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.errors import RecipeError
from pipelines.parts.annotations.capitals import Capitals
from pipelines.parts.annotations.one_value import OneValue
from pipelines.parts.annotations.repeated_words import RepeatedWords
from pipelines.parts.corruptions.capital_labels import CapitalLabels
from pipelines.parts.corruptions.repetition_labels import RepetitionLabels
from pipelines.vocabulary import Field
from tests.pipelines.parts.annotations.tokenized_texts import by_word, values_of, whole
from tests.pipelines.parts.corruptions.rows import plain, token_ids
from tests.pipelines.recipe.test_parts_that_cannot_meet import check_refusal, written
from tests.steps import library_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

WORDS = ["The", "parser", "returns", "None", "23", ".", "the", "Äpfel", "北京"]


def spelt(tokens: list[str], values: np.ndarray, words: list[str]) -> dict[str, set[int]]:
    """Word → the values of its tokens, for tokens in lower case in the order of `words`."""
    found: dict[str, set[int]] = {}
    rest, word = "", iter(words)
    current = ""
    for token, value in zip(tokens, values.tolist(), strict=True):
        if not rest:
            current = next(word)
            rest = current.lower()
        rest = rest.removeprefix(token.removeprefix("##")) if token != "[UNK]" else ""
        found.setdefault(current, set()).add(value)
    return found


@pytest.mark.parametrize("made", [by_word, lambda words, tokenizer: whole(" ".join(words), tokenizer)])
def test_tokens_have_the_case_of_their_word(made: Callable[..., Any], tokenizer: PreTrainedTokenizerFast) -> None:
    words = WORDS[:7]
    text, tokens = made(words, tokenizer)
    expected = {"The": {2}, "parser": {1}, "returns": {1}, "None": {2}, "23": {0}, ".": {0}, "the": {1}}
    assert spelt(tokens, values_of(Capitals(), text), words) == expected
    none, _ = made(["12", "?"], tokenizer)
    assert not values_of(Capitals(), none).any()


def test_words_of_other_segments_are_repeated(tokenizer: PreTrainedTokenizerFast) -> None:
    words = ["Read", "the", "file", "twice", "read", "a", "line", "a", "line"]
    text, tokens = whole(" ".join(words), tokenizer)
    values = spelt(tokens, values_of(RepeatedWords(segment=4), text), [*words])
    # read is in the first segment and the second; a and line are twice in the second, and in no other
    assert values["Read"] == values["read"] == {2}
    assert all(values[word] == {1} for word in ("the", "file", "twice")) and values["a"] == {1}
    assert spelt(tokens, values_of(RepeatedWords(segment=7), text), [*words])["line"] == {2}


def test_one_value_is_that_of_every_token(tokenizer: PreTrainedTokenizerFast) -> None:
    text, tokens = whole("some text", tokenizer)
    assert values_of(OneValue(channel="tasks", value=2, size=3), text).tolist() == [2] * len(tokens)
    with pytest.raises(ValidationError, match="value: 3 is outside the channel's range, 0 to 2"):
        OneValue(channel="tasks", value=3, size=3)


@pytest.mark.parametrize(("part", "channel"), [(CapitalLabels(), "capitals"), (RepetitionLabels(), "repeated_words")])
def test_labels_are_the_values_of_the_channel(part: CapitalLabels, channel: str) -> None:
    batch = plain(2, 6)
    values = np.array([[0, 1, 2, 2, 1, 0], [0, 0, 0, 2, 0, 0]], dtype=np.uint8)
    result = part.apply({**batch, Field.of_channel(channel): values}, token_ids(), np.random.default_rng(0))
    none = -100
    assert result[Field.TAG_LABELS].tolist() == [[none, 0, 1, 1, 0, none], [none, none, none, 1, none, none]]


def test_labels_without_their_annotation_are_refused(tmp_path: Path) -> None:
    recipe = written(corruption="capital_labels").replace("head: masked_lm", "head: token_classes")
    with pytest.raises(RecipeError) as refused:
        library_of(tmp_path, meeting=recipe).load("meeting")
    check_refusal(str(refused.value), ("corruption", "capital_labels needs capitals, which no part before it provides"))
