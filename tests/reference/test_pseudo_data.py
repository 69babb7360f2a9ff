"""Labels that plain text makes for itself: every row against what walking along it, token by token, says of it."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.channel_labels import IGNORED
from pipelines.parts.corruptions.disfluencies import ADDED, BEFORE_GAP, TEXT, Disfluencies
from pipelines.parts.corruptions.pseudo_words import PseudoWords
from pipelines.parts.corruptions.repeated_mention import RepeatedMention
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import END, MASK, SPECIAL, plain, token_ids

NAMES = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "Ġarray", "matrix", "##shape", "index", "12", "axis")


def named_tokens(counts: list[int] | None = None) -> TokenIds:
    return TokenIds(len(NAMES), MASK, SPECIAL, end=END, texts=NAMES,
                    counts=None if counts is None else np.asarray(counts, dtype=np.int64))  # fmt: skip


def rows_of(*rows: list[int], documents: list[list[int]] | None = None) -> Arrays:
    ids = np.asarray(rows, dtype=np.int64)
    known = np.zeros_like(ids) if documents is None else np.asarray(documents, dtype=np.int64)
    return {Field.INPUT_IDS: ids, Field.DOCUMENTS: known}


@pytest.mark.parametrize("seed", range(8))
def test_a_mention_is_masked_and_labelled_where_its_document_repeats_it(seed: int) -> None:
    batch = plain(16, 40, seed, size=20)
    batch[Field.DOCUMENTS] = np.cumsum(np.random.default_rng(seed).random((16, 40)) < 0.03, axis=1)
    part = RepeatedMention(most=5)
    result = part.apply(batch, token_ids(), np.random.default_rng(seed))
    fields = (batch[Field.INPUT_IDS], result[Field.INPUT_IDS], result[Field.TAG_LABELS], batch[Field.DOCUMENTS])
    for before, after, labels, documents in zip(*fields, strict=True):
        (hidden,) = np.flatnonzero(before != after).tolist() or [None]
        pairs = list(zip(before.tolist(), documents.tolist(), strict=True))
        possible = {one for one in pairs if one[0] not in SPECIAL and 2 <= pairs.count(one) <= 5}
        if hidden is None:
            assert not possible and (labels == IGNORED).all()
            continue
        assert after[hidden] == MASK and pairs[hidden] in possible
        wanted = [
            IGNORED if token in SPECIAL or at == hidden else int((token, document) == pairs[hidden])
            for at, (token, document) in enumerate(pairs)
        ]
        assert labels.tolist() == wanted and 1 in wanted


def test_a_mention_is_a_token_of_letters_that_is_not_everywhere() -> None:
    tokens = named_tokens()
    # "the" is too short, "12" no word, "##shape" no whole one; "index" is in two documents, "axis" too often
    batch = rows_of([5, 5, 10, 10, 8, 8], [9, 9, 7, 5, 5, 7], [11, 11, 11, 11, 11, 5],
                    documents=[[0] * 6, [0, 1, 1, 1, 1, 1], [0] * 6])  # fmt: skip
    result = RepeatedMention(most=4).apply(batch, tokens, np.random.default_rng(0))
    assert (result[Field.TAG_LABELS][[0, 2]] == IGNORED).all()
    assert sorted(result[Field.TAG_LABELS][1].tolist()) == [IGNORED, 0, 0, 0, 0, 1]
    assert set(np.flatnonzero(result[Field.INPUT_IDS][1] == MASK)) <= {2, 5}


def unique_rows(rows: int, length: int) -> Arrays:
    """Rows between a start and an end, in which no token is twice."""
    ids = len(SPECIAL) + np.arange(rows * length, dtype=np.int64).reshape(rows, length)
    ids[:, 0], ids[:, -1] = 2, END
    return {Field.INPUT_IDS: ids}


def undone(ids: list[int], labels: list[int], marks: list[int]) -> list[int]:
    """The text without what was added."""
    return [token for token, label, real in zip(ids, labels, marks, strict=True) if label != ADDED and real]


@pytest.mark.parametrize("longest", [1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_without_what_was_added_a_row_is_its_text_with_the_gaps_that_are_labelled(seed: int, longest: int) -> None:
    batch = unique_rows(12, 48)
    tokens = TokenIds(4000, MASK, SPECIAL, end=END)
    result = Disfluencies(rate=0.15, longest=longest).apply(batch, tokens, np.random.default_rng(seed))
    labels, marks = result[Field.TAG_LABELS], result[Field.ATTENTION_MASK]
    kinds: set[int] = set()
    fields = (batch[Field.INPUT_IDS], result[Field.INPUT_IDS], labels, marks)
    for clean, ids, tags, real in zip(*(one.tolist() for one in fields), strict=True):
        assert all((tag == IGNORED) == (token in SPECIAL) for token, tag in zip(ids, tags, strict=True))
        kinds |= set(tags)
        left = undone(ids, tags, real)
        assert left[0] == 2 and left[-1] == END and left.count(END) == 1, "special tokens stay"
        # no token is twice, so that a gap is where the next token of the text is missing
        at = [clean.index(token) for token in left[:-1]]
        assert at == sorted(at)
        of_text = [tag for tag, mark in zip(tags, real, strict=True) if tag != ADDED and mark]
        cut = max(at)
        for place, following, tag in zip(at, at[1:], of_text, strict=False):
            if tag != IGNORED:
                assert (tag == BEFORE_GAP) == (following > place + 1)
        dropped = clean[cut + 1 : -1]
        assert real.count(1) == len(clean) or not dropped or of_text[len(at) - 1] == BEFORE_GAP
    assert {TEXT, ADDED, BEFORE_GAP} <= kinds


def test_a_repetition_is_before_what_it_repeats() -> None:
    batch = unique_rows(64, 40)
    tokens = TokenIds(4000, MASK, SPECIAL, end=END)
    result = Disfluencies(rate=0.1, longest=1).apply(batch, tokens, np.random.default_rng(1))
    ids, added = result[Field.INPUT_IDS], result[Field.TAG_LABELS] == ADDED
    repeated = added[:, :-1] & (ids[:, :-1] == ids[:, 1:])
    assert 0.35 < repeated.sum() / added.sum() < 0.65, "half of the additions are repetitions"
    assert (added.sum() / (ids > END).sum()) == pytest.approx(0.1 * 2 / 3, abs=0.02)


def test_pairs_of_words_are_written_as_their_first() -> None:
    tokens = named_tokens(counts=[0, 0, 0, 0, 0, 90, 7, 40, 60, 30, 80, 8])
    # by frequency: matrix and index, axis and array; "the" has three letters
    batch = rows_of([2, 5, 6, 7, 8, 9, 10, 11, 3], [9, 9, 7, 7, 11, 6, 5, 5, 5])
    result = PseudoWords(pairs=2).apply(batch, tokens, np.random.default_rng(0))
    none = IGNORED
    assert result[Field.INPUT_IDS].tolist() == [[2, 5, 11, 7, 8, 7, 10, 11, 3], [7, 7, 7, 7, 11, 11, 5, 5, 5]]
    assert result[Field.TAG_LABELS].tolist() == [
        [none, none, 1, 0, none, 1, none, 0, none],
        [1, 1, 0, 0, 0, 1, none, none, none],
    ]
    assert result[Field.MASKED_LABELS].tolist() == [6, 7, 9, 11, 9, 9, 7, 7, 11, 6]
    one = PseudoWords(pairs=1).apply(batch, tokens, np.random.default_rng(0))
    assert one[Field.INPUT_IDS][0].tolist() == [2, 5, 6, 7, 8, 7, 10, 11, 3]


def test_a_vocabulary_without_words_has_no_pseudo_words() -> None:
    message = "corruption pseudo_words: the text has no two tokens of 9 letters or more; lower letters"
    with pytest.raises(RecipeError, match=re.escape(message)):
        PseudoWords(letters=9).apply(rows_of([5, 6]), named_tokens(), np.random.default_rng(0))
