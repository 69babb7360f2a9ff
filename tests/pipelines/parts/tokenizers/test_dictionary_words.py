"""Words of a dictionary: jieba's, by the best path through their frequencies."""

from __future__ import annotations

import math
from collections import Counter
from unicodedata import normalize

import pytest
import rjieba

from pipelines.errors import DataError
from pipelines.parts.tokenizers.dictionary_words import DictionaryWords
from tests.chinese_text import ARTICLES

TEXTS = [normalize("NFKC", article) for article in ARTICLES]


def test_a_text_is_cut_into_jiebas_words() -> None:
    tokenizer = DictionaryWords(min_count=1).train(TEXTS)
    ours = [token for text in TEXTS for token in tokenizer.tokenize(text)]
    theirs = [word for text in TEXTS for word in rjieba.cut(text, True)]
    agreeing = sum((Counter(ours) & Counter(theirs)).values())
    assert agreeing > 0.95 * len(theirs) and abs(len(ours) - len(theirs)) < 0.05 * len(theirs)
    assert max(map(len, ours)) > 2, "words, not characters"


def test_the_cut_is_the_most_likely_one() -> None:
    """Against all paths through the frequencies of the words, by dynamic programming in float64."""
    tokenizer = DictionaryWords(min_count=1).train(TEXTS)
    counts = Counter(word for text in TEXTS for word in rjieba.cut(text, True))
    total = sum(counts.values())

    def likelihood(words: list[str]) -> float:
        return sum(math.log(counts[word] / total) for word in words)

    for text in TEXTS:
        best: list[float] = [0.0] + [-math.inf] * len(text)
        for end in range(1, len(text) + 1):
            for begin in range(end):
                if text[begin:end] in counts:
                    best[end] = max(best[end], best[begin] + math.log(counts[text[begin:end]] / total))
        assert likelihood(tokenizer.tokenize(text)) == pytest.approx(best[-1], rel=1e-9)


def test_rare_words_are_unknown_and_spaces_end_words() -> None:
    tokenizer = DictionaryWords(min_count=2).train(TEXTS)
    counts = Counter(word for text in TEXTS for word in rjieba.cut(text, True))
    tokens = set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens)
    assert tokens == {word for word, count in counts.items() if count >= 2}
    assert tokenizer.tokenize("人人 人人") == ["人人", "人人"]
    assert tokenizer("猫", add_special_tokens=False)["input_ids"] == [tokenizer.unk_token_id]
    most = DictionaryWords(min_count=1, vocab_size=64).train(TEXTS)
    assert len(most) == 64 and "人人" in most.get_vocab()


def test_text_without_frequent_words_is_refused() -> None:
    with pytest.raises(DataError, match="no words of the text occur 2 times or more; give more text, or lower min_"):
        DictionaryWords().train(["人人"])
