"""Similar words: whole ones, of as many tokens, in MacBERT's shares; sources that are none are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.stats import chisquare

from pipelines.parts.corruptions import TokenIds
from pipelines.parts.corruptions.similar_words import SimilarWords
from pipelines.parts.corruptions.word_sources import similar_by_lexicon, similar_by_vectors
from pipelines.recipe.problems import Setting
from pipelines.vocabulary import Field
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import written

TEXTS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "高", "兴", "快", "乐", "书", "籍", "好", "##s", "play", "game")
GROUPS = "高兴\t快乐\n书\t籍\ngame\tplay\n"


def part(tmp_path: Path, **options: object) -> SimilarWords:
    (tmp_path / "similar.tsv").write_text(GROUPS, encoding="utf-8")
    return SimilarWords.model_validate({"lexicon": tmp_path / "similar.tsv", **options})


def test_a_word_is_replaced_whole_in_the_papers_shares(tmp_path: Path) -> None:
    """Rows of 高兴 書 alike: 80 % similar, 10 % random, 10 % as they are, of words; never the mask token."""
    ids = np.tile([2, *[5, 6, 9, 11] * 10, 3], (400, 1))
    starts = np.tile([0, *[1, 0, 1, 1] * 10, 0], (400, 1))
    tokens = TokenIds(len(TEXTS), 4, (0, 1, 2, 3, 4), texts=TEXTS)
    batch = {Field.INPUT_IDS: ids, Field.WORD_STARTS: starts}
    result = part(tmp_path).apply(batch, tokens, np.random.default_rng(0))
    after, positions = result[Field.INPUT_IDS], result[Field.MASKED_POSITIONS]
    assert 4 not in after
    chosen = np.zeros(ids.shape, dtype=bool)
    chosen.ravel()[positions] = True
    rows, first = np.nonzero(chosen & (ids == 5))
    assert chosen[rows, first + 1].all(), "whole words"
    pairs = list(zip(after[rows, first].tolist(), after[rows, first + 1].tolist(), strict=True))
    similar, kept = pairs.count((7, 8)), pairs.count((5, 6))
    chance = 0.1 / 100  # two random tokens of ten may be either
    expected = np.array([0.8 + chance, 0.1 + chance, 0.1 - 2 * chance]) * len(pairs)
    assert chisquare([similar, kept, len(pairs) - similar - kept], expected).pvalue > 1e-3
    alone = after[chosen & (ids == 11)]
    assert len(set(alone.tolist())) > 5, "a word without a similar one becomes a random one"


def test_a_similar_word_has_as_many_tokens_and_the_marks_of_the_word(tmp_path: Path) -> None:
    tokens = TokenIds(len(TEXTS), 4, (0, 1, 2, 3, 4), texts=TEXTS)
    similar = part(tmp_path)._similar
    assert similar((5, 6), tokens) == ((7, 8),) and similar((14,), tokens) == ((13,),)
    assert similar((14, 12), tokens) == () and similar((6, 5), tokens) == ()


def test_vectors_give_the_nearest_words(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("3 2\n好 1 0\n棒 0.9 0.1\n坏 -1 0\n", encoding="utf-8")
    lists = similar_by_vectors(path, 1)
    assert lists.similar("好") == ("棒",) and lists.similar("无") == ()
    assert lists.has_language("zh") and not lists.has_language("en")


@pytest.mark.parametrize(
    ("text", "says"),
    [("高兴\n", "line 1: expected two or more"), ("a\tb\na\t\n", "line 2"), ("# nothing\n", "contains no words")],
)
def test_a_lexicon_that_is_none_is_refused_with_its_line(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "words.tsv"
    path.write_text(text, encoding="utf-8")
    reason = SimilarWords(lexicon=path).unfit("zh")
    assert reason is not None and says in reason and str(path) in reason


@pytest.mark.parametrize("text", ["好 1 x\n棒 1 1\n", "好 0 0\n棒 1 1\n", "好 1 1\n棒 1\n", "好 1 1\n"])
def test_vectors_that_are_none_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    assert str(path) in str(SimilarWords(vectors=path).unfit(None))


def test_one_source_is_named(tmp_path: Path) -> None:
    for options in ({}, {"lexicon": "a.tsv", "vectors": "b.txt"}):
        with pytest.raises(ValidationError, match="either a lexicon or vectors"):
            SimilarWords.model_validate(options)
    assert similar_by_lexicon(part(tmp_path).source).similar("书") == ("籍",)


def test_what_cannot_be_is_refused_when_a_recipe_is_loaded(tmp_path: Path) -> None:
    path = part(tmp_path).source
    path.write_text("高兴\t快乐\n", encoding="utf-8")
    words = f"{{name: similar_words, lexicon: {path}}}"
    message = refusal(tmp_path, "meeting", written(corruption=words, segmentation="spaces"), Setting(language="en"))
    check_refusal(message, ("corruption", f"{path} has no entry for en, the dataset's language"))
    message = refusal(tmp_path, "meeting", written(corruption=words), Setting(language="zh"))
    check_refusal(message, ("similar_words needs word_starts", "jieba"))
    missing = words.replace("similar.tsv", "none.tsv")
    message = refusal(tmp_path, "meeting", written(corruption=missing, segmentation="spaces"), Setting())
    check_refusal(message, ("there is no file", "none.tsv"))
