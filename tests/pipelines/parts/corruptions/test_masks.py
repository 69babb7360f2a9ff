"""Masks of tokens and of whole words: who is chosen, and what becomes of the chosen."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.span_mask import SpanMask
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.corruptions.whole_word_mask import WholeWordMask, first_that_fit
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import MASK, SIZE, SPECIAL, batches, plain, token_ids, words_of
from tests.small_corpus import documents

RATES = st.sampled_from([0.01, 0.15, 0.3, 0.5])


@pytest.mark.parametrize(
    ("rows", "length", "options", "sums", "after"),
    [
        (2, 12, {}, (2947183050, 234441358, 1549234342), 611391742),
        (7, 33, {"rate": 0.4, "mask": 0.5, "random": 0.5}, (642227775, 321888826, 1751065038), 204609287),
        (32, 128, {}, (3073357777, 1021549736, 2908739937), 832782366),
    ],
)
def test_token_mask_draws_what_it_always_drew(
    rows: int, length: int, options: dict[str, float], sums: tuple[int, ...], after: int
) -> None:
    """Checksums of commit d089ef2, where token_mask stood alone; `after` is what the generator gave next."""
    random = np.random.default_rng(rows)
    ids = random.integers(0, 64, (rows, length))
    ids[:, 0], ids[:, -1] = 2, 3
    part = Corruption.model_validate({"name": "token_mask", **options})
    given = part.apply({Field.INPUT_IDS: ids}, TokenIds(64, 4, SPECIAL), random)
    fields = (Field.INPUT_IDS, Field.MASKED_POSITIONS, Field.MASKED_LABELS)
    assert tuple(zlib.crc32(np.ascontiguousarray(given[name]).astype("<i8").tobytes()) for name in fields) == sums
    assert random.integers(1 << 30) == after


@given(batch=batches(), rate=RATES, seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_a_word_is_masked_wholly_or_not_at_all(batch: Arrays, rate: float, seed: int) -> None:
    given = WholeWordMask(rate=rate).apply(batch, token_ids(), np.random.default_rng(seed))
    chosen = set(given[Field.MASKED_POSITIONS].tolist())
    for words in words_of(batch):
        ordinary = sum(map(len, words))
        budget = max(1, int(np.rint(rate * ordinary)))
        touched = [word for word in words if chosen & set(word)]
        assert all(set(word) <= chosen for word in touched)
        total = sum(map(len, touched))
        left = [len(word) for word in words if not chosen & set(word)]
        if total > budget or (words and not touched):
            assert len(touched) == 1 and min(map(len, words)) > budget, "none fits: the first word drawn, and no other"
        else:
            assert all(total + size > budget for size in left), "a word that still fits was left"


@given(
    rows=st.lists(st.lists(st.integers(1, 7), min_size=1, max_size=12), min_size=1, max_size=5),
    budgets=st.lists(st.integers(1, 20), min_size=5, max_size=5),
)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_words_are_taken_in_turn_as_long_as_they_fit(rows: list[list[int]], budgets: list[int]) -> None:
    """Against the loop of BERT's create_masked_lm_predictions, and the first word where it takes none."""
    expected: list[bool] = []
    for sizes, budget in zip(rows, budgets, strict=False):
        total, taken = 0, []
        for size in sizes:
            taken.append(total + size <= budget)
            total += size * taken[-1]
        expected += taken if any(taken) else [True] + taken[1:]
    owner = np.repeat(np.arange(len(rows)), [len(sizes) for sizes in rows])
    sizes = np.asarray([size for sizes in rows for size in sizes])
    assert first_that_fit(sizes, owner, np.asarray(budgets[: len(rows)])).tolist() == expected


def test_whole_words_of_real_text_are_closed_as_in_transformers(tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = tokenizer(documents("json")[:8], truncation=True, max_length=64, padding="max_length")
    ids = np.asarray(encoded["input_ids"])
    # −1 outside words, as in transformers
    numbers = np.asarray([[-1 if n is None else n for n in encoded.word_ids(row)] for row in range(len(ids))])
    batch = {Field.INPUT_IDS: ids, Field.WORD_STARTS: (np.diff(numbers, axis=1, prepend=-1) > 0).astype(np.int64)}
    tokens = TokenIds(len(tokenizer), tokenizer.mask_token_id, tuple(sorted(tokenizer.all_special_ids)))
    for part, same in ((WholeWordMask(), True), (SpanMask(), True), (TokenMask(), False)):
        given = part.apply(batch, tokens, np.random.default_rng(0))
        masked = np.zeros(ids.size, dtype=np.bool_)
        masked[given[Field.MASKED_POSITIONS]] = True
        masked = masked.reshape(ids.shape)
        assert np.array_equal(DataCollatorForLanguageModeling._whole_word_mask(numbers, masked), masked) == same


@pytest.mark.parametrize("part", [TokenMask(), WholeWordMask(), SpanMask()], ids=lambda part: part.name)
def test_the_share_and_the_fate_of_masked_tokens_are_those_of_the_paper(part: Corruption) -> None:
    batch = plain(200, 202)
    batch[Field.WORD_STARTS] = np.ones_like(batch[Field.INPUT_IDS])
    given = part.apply(batch, token_ids(), np.random.default_rng(1))
    positions, labels = given[Field.MASKED_POSITIONS], given[Field.MASKED_LABELS]
    assert np.array_equal(np.bincount(positions // 202), np.full(200, 30)), "words of one token: the count is exact"
    now = given[Field.INPUT_IDS].ravel()[positions]
    # 6,000 tokens, or 1,700 spans that share a fate: three standard errors of 0.8 are 0.016 and 0.029
    assert np.mean(now == MASK) == pytest.approx(0.8, abs=0.03)
    drawn = np.mean((now != MASK) & (now != labels)) * (SIZE - 5) / (SIZE - 6)
    assert drawn == pytest.approx(0.1, abs=0.025)
    assert not np.isin(now[now != MASK], SPECIAL).any()


def test_every_word_is_chosen_about_equally_often() -> None:
    batch = plain(4000, 22)
    starts = np.ones_like(batch[Field.INPUT_IDS])
    starts[:, 2:21:2] = 0  # ten words of two tokens
    given = WholeWordMask(rate=0.3).apply({**batch, Field.WORD_STARTS: starts}, token_ids(), np.random.default_rng(2))
    share = np.bincount(given[Field.MASKED_POSITIONS] % 22, minlength=22)[1:-1] / 4000
    assert share == pytest.approx(np.full(20, 0.3), abs=0.025), "three standard errors are 0.022"
