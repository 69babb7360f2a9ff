"""Pairs of segments: where rows are divided, what the second segment is, and how often it is another's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from transformers import PreTrainedTokenizerFast

from pipelines.parts.corruptions import Arrays
from pipelines.parts.corruptions.next_sentence import NextSentence
from pipelines.parts.corruptions.segment_pairs import UNDIVIDED
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.layouts.windows import Windows
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.vocabulary import WORD_STARTS, Field
from tests.pipelines.parts.corruptions.rows import END, MASK, SPECIAL, batches, token_ids
from tests.small_corpus import documents
from tests.streams import stream_of

ROWS, LENGTH = 64, 34


def corpus_rows(seed: int = 0, rows: int = ROWS) -> Arrays:
    """Windows of eight documents of 30 to 200 tokens, each token once in the text: id 5 + its position in it."""
    random = np.random.default_rng(seed)
    ends = np.cumsum(random.integers(30, 200, size=8))
    begins = random.choice(ends[-1] - LENGTH, size=rows, replace=False)[:, None] + np.arange(LENGTH)
    documents = np.searchsorted(ends, begins, side="right")
    ids = np.where(np.isin(begins + 1, ends), END, begins + len(SPECIAL))
    ids[:, 0], ids[:, -1] = 2, END
    documents[:, 0], documents[:, -1] = documents[:, 1], documents[:, -2]
    return {
        Field.INPUT_IDS: ids,
        Field.ORIGINAL_IDS: ids,
        Field.DOCUMENTS: documents,
        WORD_STARTS.field: ids % 3 % 2,
    }


def paired(seed: int, batch: Arrays) -> Arrays:
    size = int(batch[Field.INPUT_IDS].max()) + 1
    return NextSentence().apply(batch, token_ids(size), np.random.default_rng(seed))


def test_a_second_segment_continues_the_first_or_is_another_documents() -> None:
    batch = corpus_rows()
    result = paired(1, batch)
    types, labels = result[Field.TOKEN_TYPE_IDS], result[Field.SEGMENT_LABELS]
    assert {0, 1} <= set(labels.tolist())
    for row in np.flatnonzero(labels != UNDIVIDED):
        split = int(np.argmax(types[row])) - 1
        before, after = batch[Field.INPUT_IDS][row], result[Field.INPUT_IDS][row]
        documents = result[Field.DOCUMENTS][row]
        assert after[split] == result[Field.ORIGINAL_IDS][row, split] == END
        assert np.array_equal(after[:split], before[:split]) and types[row, split + 1 :].all()
        assert 0.25 * (LENGTH - 4) <= split <= 0.75 * LENGTH + 2
        if labels[row] == 0:
            assert np.array_equal(after[split + 1 :], before[split + 1 :])
            assert after[split + 1] == after[split - 1] + 2 and documents[split - 1] == documents[split + 1]
        else:
            assert not set(documents[:split]) & set(documents[split + 1 :])
            # it is contiguous text of one other row, at its own columns, and its channel came along
            others = np.flatnonzero((batch[Field.INPUT_IDS][:, split + 1 :] == after[split + 1 :]).all(1))
            assert len(others) == 1 and others[0] != row
            assert np.array_equal(
                result[WORD_STARTS.field][row, split + 1 :], batch[WORD_STARTS.field][others[0], split + 1 :]
            )


def test_half_of_the_pairs_are_random_and_masks_are_fifteen_per_cent() -> None:
    """Exact binomial tests over 150 batches with a fixed seed; shares that were off by 0.02 would fail."""
    replaced = pairs = chosen = masked = randomised = ordinary = 0
    for seed in range(150):
        batch = corpus_rows(seed)
        size = int(batch[Field.INPUT_IDS].max()) + 1
        ids, random = token_ids(size), np.random.default_rng([seed, 7])
        clean = NextSentence().apply(batch, ids, random)
        result = TokenMask().apply(clean, ids, random)
        labels = clean[Field.SEGMENT_LABELS]
        replaced, pairs = replaced + int((labels == 1).sum()), pairs + int((labels >= 0).sum())
        positions = result[Field.MASKED_POSITIONS]
        seen = result[Field.INPUT_IDS].ravel()[positions]
        ordinary += int((~np.isin(clean[Field.INPUT_IDS], SPECIAL)).sum())
        chosen, masked = chosen + len(positions), masked + int((seen == MASK).sum())
        randomised += int(((seen != MASK) & (seen != result[Field.MASKED_LABELS])).sum())
    assert pairs > 0.98 * 150 * ROWS, "nearly every row can be divided"
    for count, of, share in ((replaced, pairs, 0.5), (masked, chosen, 0.8), (randomised, chosen, 0.1)):
        assert binomtest(count, of, share).pvalue > 0.001, f"{count / of:.3f} instead of {share}"
    assert chosen / ordinary == pytest.approx(0.15, abs=0.01), "a row's number is rounded"


def test_ranks_read_the_pairs_of_the_whole_batch(tokenizer: PreTrainedTokenizerFast) -> None:
    """A batch is a function of seed and step, and four micro-batches of one shard each make it up."""
    stream = stream_of(documents("logging", "json"), tokenizer)
    options = {"rows": 32, "length": 32, "steps": 9, "corruption_shards": 4}
    one, again, other = (
        PlainBatches(stream, tokenizer, Windows(), (NextSentence(),), seed=seed, **options) for seed in (5, 5, 6)
    )
    whole = one.batch(7)
    assert {0, 1} <= set(whole[Field.SEGMENT_LABELS].tolist())
    parts = [again.batch(7, number, 4) for number in range(4)]
    for name in (Field.INPUT_IDS, Field.TOKEN_TYPE_IDS, Field.SEGMENT_LABELS, Field.DOCUMENTS):
        assert np.array_equal(np.concatenate([part[name] for part in parts]), whole[name])
    assert not np.array_equal(other.batch(7)[Field.TOKEN_TYPE_IDS], whole[Field.TOKEN_TYPE_IDS])


@given(batch=batches(), seed=st.integers(0, 2**32))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_whatever_the_rows_no_label_is_wrong(batch: Arrays, seed: int) -> None:
    result = NextSentence().apply(batch, token_ids(), np.random.default_rng(seed))
    labels, types = result[Field.SEGMENT_LABELS], result[Field.TOKEN_TYPE_IDS]
    assert set(labels.tolist()) <= {0, 1, UNDIVIDED}
    undivided = labels == UNDIVIDED
    assert not types[undivided].any() and types[~undivided].any(1).all()
    assert np.array_equal(result[Field.INPUT_IDS][undivided], batch[Field.INPUT_IDS][undivided])
    if len(labels) == 1:
        assert labels[0] != 1, "there is no other row"
    for row in np.flatnonzero(labels == 1):
        first, second = (set(result[Field.DOCUMENTS][row][types[row] == one].tolist()) for one in (0, 1))
        assert not first & second
