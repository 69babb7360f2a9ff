"""BART's noises: what is removed, what stands for it, in which order, and that the target is the row as it was."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.document_rotation import DocumentRotation
from pipelines.parts.corruptions.sentence_permutation import SentencePermutation
from pipelines.parts.corruptions.text_infilling import TextInfilling
from pipelines.parts.corruptions.token_deletion import TokenDeletion
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import END, MASK, SPECIAL, batches, plain, token_ids


def real_tokens(given: Arrays) -> list[list[int]]:
    """The tokens of each row, which padding follows."""
    rows = []
    for ids, mask in zip(given[Field.INPUT_IDS], given[Field.ATTENTION_MASK], strict=True):
        count = int(mask.sum())
        assert mask[:count].all() and (ids[count:] == 0).all()
        rows.append(ids[:count].tolist())
    return rows


def is_in_order(part: list[int], whole: list[int]) -> bool:
    rest = iter(whole)
    return all(token in rest for token in part)


@given(
    batch=batches(),
    rate=st.sampled_from([0.05, 0.3, 0.95]),
    mean=st.sampled_from([0.1, 3.0, 30.0]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_infilling_removes_its_share_and_adds_masks_alone(batch: Arrays, rate: float, mean: float, seed: int) -> None:
    part = TextInfilling(rate=rate, mean_length=mean)
    given = part.apply(batch, token_ids(), np.random.default_rng(seed))
    for before, after in zip(batch[Field.INPUT_IDS].tolist(), real_tokens(given), strict=True):
        ordinary = sum(token not in SPECIAL for token in before)
        rest = [token for token in after if token != MASK]
        removed = len(before) - len(rest)
        assert is_in_order(rest, before) and removed <= round(rate * ordinary) and len(after) <= len(before)
        assert [token for token in rest if token in SPECIAL] == [token for token in before if token in SPECIAL]
        if mean == 30:
            assert removed == round(rate * ordinary)


def test_lengths_are_poissons_and_every_order_is_equally_likely() -> None:
    part, random = TextInfilling(rate=0.5, mean_length=3), np.random.default_rng(0)
    lengths, used = part._lengths(np.full(4000, 200), 300, random)
    drawn = [one for row, of_row in zip(lengths, used, strict=True) for one in row[of_row][:-1]]
    seen = np.bincount(drawn, minlength=12)[:12]
    expected = np.asarray([np.exp(-3) * 3.0**k / float(np.prod(np.arange(1, k + 1))) for k in range(12)])
    assert np.abs(seen / len(drawn) - expected).max() < 0.01
    # one span of three among five other tokens: six places
    one = TextInfilling(rate=3 / 8, mean_length=900)
    given = one.apply(plain(9000, 10, size=30), token_ids(), random)
    places = (given[Field.INPUT_IDS] == MASK).argmax(1)
    assert chisquare(np.bincount(places, minlength=7)[1:7]).pvalue > 0.001
    assert all(len(row) == 8 for row in real_tokens(given))


@given(batch=batches(), seed=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_deletion_leaves_the_rest_in_its_order(batch: Arrays, seed: int) -> None:
    given = TokenDeletion(rate=0.4).apply(batch, token_ids(), np.random.default_rng(seed))
    for before, after in zip(batch[Field.INPUT_IDS].tolist(), real_tokens(given), strict=True):
        ordinary = sum(token not in SPECIAL for token in before)
        assert is_in_order(after, before) and len(before) - len(after) == round(0.4 * ordinary)


@given(batch=batches(), seed=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_rotation_turns_the_text_and_nothing_else(batch: Arrays, seed: int) -> None:
    given = DocumentRotation().apply(batch, token_ids(), np.random.default_rng(seed))
    for before, after in zip(batch[Field.INPUT_IDS], given[Field.INPUT_IDS], strict=True):
        at = np.flatnonzero(~np.isin(before, SPECIAL))
        if not len(at):
            assert np.array_equal(before, after)
            continue
        text, turned = (row[at[0] : at[-1] + 1].tolist() for row in (before, after))
        assert turned in [text[k:] + text[:k] for k in range(len(text))]
        assert np.array_equal(np.delete(before, range(at[0], at[-1] + 1)), np.delete(after, range(at[0], at[-1] + 1)))


def test_rotation_begins_anywhere() -> None:
    batch = plain(6000, 8)
    batch[Field.INPUT_IDS] = np.tile(np.asarray([2, 5, 6, 7, 8, 9, 10, END]), (6000, 1))
    given = DocumentRotation().apply(batch, token_ids(), np.random.default_rng(3))
    assert chisquare(np.bincount(given[Field.INPUT_IDS][:, 1], minlength=11)[5:]).pvalue > 0.001


STOP = ("<pad>", "<unk>", "<s>", "</s>", "<mask>", "Ġa", "Ġb", "Ġc", ".", "x", "ãĢĤ")


def test_sentences_come_in_every_order() -> None:
    tokens = TokenIds(len(STOP), MASK, SPECIAL, end=END, texts=STOP)
    # "a. b." and, in the next document, "c.x" with a stop inside a word, which ends without one
    row = np.asarray([2, 5, 8, 6, 8, END, 7, 8, 9, END])
    given = SentencePermutation().apply({Field.INPUT_IDS: np.tile(row, (6000, 1))}, tokens, np.random.default_rng(4))
    sentences = [[5, 8], [6, 8], [END], [7, 8, 9]]
    orders = [[2, *(token for one in order for token in one), END] for order in permutations(sentences)]
    counts = [int((given[Field.INPUT_IDS] == np.asarray(one)).all(1).sum()) for one in orders]
    assert sum(counts) == 6000 and min(counts) > 0 and chisquare(counts).pvalue > 0.001
    chinese = np.asarray([[2, 9, 10, 9, 9, 10, END]])
    after = {
        tuple(
            SentencePermutation()
            .apply({Field.INPUT_IDS: chinese}, tokens, np.random.default_rng(n))[Field.INPUT_IDS][0]
            .tolist()
        )
        for n in range(20)
    }
    assert after == {(2, 9, 10, 9, 9, 10, END), (2, 9, 9, 10, 9, 10, END)}


@pytest.mark.parametrize("noises", [["sentence_permutation", "text_infilling"], ["token_deletion", "text_infilling"]])
def test_noises_follow_one_another_and_the_target_is_the_row(noises: list[str]) -> None:
    batch, random = plain(50, 20, size=30), np.random.default_rng(5)
    given = dict(batch)
    for noise in (*noises, "original_as_target"):
        given = Corruption.model_validate(noise).apply(given, token_ids(), random)
    assert np.array_equal(given[Field.TARGET_IDS], batch[Field.INPUT_IDS])
    assert all(row.count(END) == 1 and row[-1] == END and row[0] == 2 for row in real_tokens(given))
