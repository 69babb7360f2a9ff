"""The value of every token's word, from a file of words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pipelines.errors import DataError
from pipelines.parts.annotations.lexicon import Lexicon
from pipelines.parts.tokenizers.characters import Characters
from tests.pipelines.parts.annotations.tokenized_texts import by_word, values_of, whole

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

VALUES = ("negative", "positive")


def lexicon(folder: Path, text: str, longest_match: bool = False) -> Lexicon:
    file = folder / "polarity.tsv"
    file.write_text(text, encoding="utf-8")
    return Lexicon(channel="polarity", file=file, values=VALUES, longest_match=longest_match)


def test_all_tokens_of_a_word_have_its_value(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    part = lexicon(tmp_path, "error\tnegative\nWonderful\tpositive\n\nlog\tpositive\n")
    text, tokens = whole("A wonderful Error, (error) logged; log errors", tokenizer)
    spelled = []
    for token, value in zip(tokens, values_of(part, text).tolist(), strict=True):
        if token.startswith("##"):
            spelled[-1] = (spelled[-1][0] + token[2:], {*spelled[-1][1], value})
        else:
            spelled.append((token, {value}))
    given = [(word, values) for word, values in spelled]
    expected = {"wonderful": {2}, "error": {1}, "log": {2}}
    assert [word for word, values in given if values != {0}] == ["wonderful", "error", "error", "log"]
    assert all(values == expected.get(word, {0}) for word, values in given), given
    pieces, _ = by_word(["A", "wonderful", "errors"], tokenizer)
    assert values_of(part, pieces)[0] == 0 and values_of(part, pieces)[1] == 2 and values_of(part, pieces)[-1] == 0


def test_longest_entries_are_matched_in_text_without_spaces(tmp_path: Path) -> None:
    part = lexicon(tmp_path, "高兴\tpositive\n不高兴\tnegative\n好\tpositive\n", longest_match=True)
    text = "他不高兴，我很高兴。好"
    tokenizer = Characters(spaces=False).train([text] * 3)
    made, tokens = whole(text, tokenizer)
    assert len(tokens) == len(text)
    assert values_of(part, made).tolist() == [0, 1, 1, 1, 0, 0, 0, 2, 2, 0, 2]


@pytest.mark.parametrize("line", ["bad", "bad\tneutral", "\tnegative"])
def test_a_bad_line_is_named(line: str, tmp_path: Path) -> None:
    part = lexicon(tmp_path, f"error\tnegative\n\n{line}\n")
    with pytest.raises(DataError, match=r"polarity\.tsv:3: expected a word, a tab.*Known: negative, positive\."):
        part.check_files()


def test_an_empty_lexicon_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the lexicon is empty"):
        lexicon(tmp_path, "\n").check_files()
