"""Who may see whom when tokens are predicted in a random order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from transformers import DataCollatorForPermutationLanguageModeling, PreTrainedTokenizerFast

from pipelines.parts.corruptions import Arrays
from pipelines.parts.corruptions.permutation import Permutation, permutation_mask
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import SPECIAL, batches, plain, token_ids
from tests.small_corpus import documents


@pytest.mark.parametrize("specials", [False, True])
def test_the_mask_is_that_of_transformers(
    tokenizer: PreTrainedTokenizerFast, monkeypatch: pytest.MonkeyPatch, specials: bool
) -> None:
    """Tolerance 0 for the same draws, which are recorded where transformers shuffles.

    Special tokens see no predicted token here; the reference's do, and are seen by all, so the answer may pass through.
    """
    encoded = tokenizer(documents("json")[:16], truncation=True, max_length=50)["input_ids"]
    rows = np.asarray([row if specials else row[1:-1] for row in encoded if len(row) == 50])
    random, orders = np.random.default_rng(0), []

    def shuffle(order: NDArray[np.int64]) -> None:
        random.shuffle(order)
        orders.append(order.T.flatten())

    monkeypatch.setattr(np.random, "shuffle", shuffle)
    collator = DataCollatorForPermutationLanguageModeling(tokenizer, return_tensors="np")
    _, theirs, _, labels = collator.numpy_mask_tokens(rows.copy())
    predicted = labels != -100
    ours = permutation_mask(np.asarray(orders, dtype=np.float32), predicted)
    special = np.isin(rows, tokenizer.all_special_ids)
    assert predicted.sum() > 50 and special.any() == specials and ours.dtype == theirs.dtype
    assert np.array_equal(ours[~special], theirs[~special])
    assert np.array_equal(ours[special], np.repeat(predicted, special.sum(1), axis=0))


@given(
    batch=batches(),
    context=st.sampled_from([1.5, 3, 6, 50]),
    longest=st.integers(1, 7),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_no_predicted_token_learns_of_itself_or_of_a_later_one(
    batch: Arrays, context: float, longest: int, seed: int
) -> None:
    part = Permutation(context=context, longest=longest)
    given = part.apply(batch, token_ids(), np.random.default_rng(seed))
    ids = batch[Field.INPUT_IDS]
    rows, length = ids.shape
    count = max(1, round(length / context))
    mapping, mask = given[Field.TARGET_MAPPING], given[Field.PERMUTATION_MASK]
    assert np.array_equal(given[Field.INPUT_IDS], ids)
    assert mapping.shape == (rows, count, length) and (mapping.sum(2) == 1).all()
    assert (np.diff(mapping.argmax(2), axis=1) > 0).all()
    assert np.array_equal(np.take_along_axis(ids, mapping.argmax(2), axis=1).ravel(), given[Field.MASKED_LABELS])
    assert Field.MASKED_POSITIONS not in given, "a head that gathers masked tokens would gather visible ones"
    for row in range(rows):
        at = mapping[row].argmax(1)
        assert not np.isin(ids[row, at], SPECIAL).any() or set(np.flatnonzero(~np.isin(ids[row], SPECIAL))) <= set(at)
        sees = mask[row] == 0
        # a token's content passes to all that see it, and from there on, through any number of layers
        content = sees | np.eye(length, dtype=np.bool_)
        for _ in range(length.bit_length()):
            content = content @ content
        known = (sees.astype(np.int64) @ content.astype(np.int64) > 0)[np.ix_(at, at)]
        order = known.sum(1).argsort()
        assert np.array_equal(known[np.ix_(order, order)], np.tri(count, k=-1, dtype=np.bool_)), "a linear order"
        assert (mask[row][:, np.setdiff1d(np.arange(length), at)] == 0).all(), "all see the context"


def test_tokens_are_predicted_in_spans_all_over_the_row() -> None:
    given = Permutation().apply(plain(3000, 120), token_ids(), np.random.default_rng(1))
    chosen = given[Field.TARGET_MAPPING].sum(1).astype(np.int64)
    assert (chosen.sum(1) == 20).all(), "one token in six, exactly"
    # three standard errors are 0.02; where the first context begins fewer placements of a span cover a token
    assert chosen[:, 5:-1].mean(0) == pytest.approx(np.full(114, 20 / 118), abs=0.03)
    starts = np.diff(chosen, axis=1, prepend=0) == 1
    # spans of 1 to 5 are 3 tokens in the mean; giving up and adding single ones shortens them, neighbours lengthen them
    assert 2.2 < chosen.sum() / starts.sum() < 3.2
    order = given[Field.PERMUTATION_MASK].sum(2)
    first = np.asarray([order[row][chosen[row] == 1].argmax() for row in range(3000)])
    assert np.bincount(first, minlength=20) == pytest.approx(np.full(20, 150), abs=50), "each as likely to be the first"
