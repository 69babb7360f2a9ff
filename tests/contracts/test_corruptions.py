"""What every corruption promises: on rows of any width, whatever stands in them."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.parts.corruptions import Arrays, Corruption
from pipelines.parts.embeddings import ProjectedEmbedding
from pipelines.vocabulary import Channel, Field
from tests.contracts.families import build, members
from tests.pipelines.parts.corruptions.rows import END, MASK, SENTINELS, SIZE, SPECIAL, batches, token_ids

OF_VECTORS = {
    Field.of_channel(member.channel)
    for member in members("embeddings").values()
    if issubclass(member, ProjectedEmbedding) and isinstance(member.channel, str)
}
"""Channels with a vector beside each token."""
FLOATS = {Field.PERMUTATION_MASK, Field.TARGET_MAPPING} | OF_VECTORS
"""Fields that a network multiplies with; all others are indices."""
MASKS = [name for name, member in members("corruptions").items() if Field.MASKED_POSITIONS in member.provides]


def channels_of(part: Corruption, batch: Arrays) -> Arrays:
    """Values of the channels that a corruption needs and `batch` lacks."""
    ids = batch[Field.INPUT_IDS]
    vectors = np.stack([ids % 3, ids % 2], axis=-1).astype(np.float32)
    channels = (key for key in part.needs - batch.keys() if key.is_channel)
    return {key: vectors if key in OF_VECTORS else ids % 3 for key in channels}


@pytest.mark.parametrize("name", members("corruptions"))
@given(batch=batches(shortest=4), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_corruption_is_a_pure_function(name: str, batch: Arrays, seed: int) -> None:
    part = build(members("corruptions")[name])
    assert isinstance(part, Corruption)
    if part.segments > 1:
        batch = {key: np.concatenate([value] * part.segments) for key, value in batch.items()}
    if Field.CENTERS in part.needs:
        batch[Field.CENTERS] = np.arange(5, 12)
    if Field.TEXTS in part.needs:
        batch[Field.TEXTS] = batch[Field.DOCUMENTS] % 2
    batch |= channels_of(part, batch)
    before = deepcopy(batch)
    once = part.apply(batch, token_ids(), np.random.default_rng(seed))
    again = part.apply(batch, token_ids(), np.random.default_rng(seed))
    assert all(np.array_equal(batch[key], before[key]) for key in before), "its input was changed"
    assert once.keys() == again.keys() and all(np.array_equal(once[key], again[key]) for key in once)
    assert once.keys() == (before.keys() - part.replaces) | part.provides, "it says what it adds and what it takes away"
    kept = before.keys() - part.provides - {Field.INPUT_IDS} - part.replaces
    if part.pairs_segments or Field.DOCUMENTS in part.replaces:
        kept -= {key for key in kept if key.is_channel}  # they move with the tokens
    assert all(np.array_equal(once[key], before[key]) for key in kept), "a field was changed in silence"
    assert all(value.dtype == (np.float32 if key in FLOATS else np.int64) for key, value in once.items())
    assert once[Field.INPUT_IDS].min() >= 0 and once[Field.INPUT_IDS].max() < token_ids().size


@pytest.mark.parametrize("name", members("corruptions"))
@given(batch=batches(shortest=4), seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_channels_move_with_their_tokens(name: str, batch: Arrays, seed: int) -> None:
    """A channel that repeats the token ids, and one of two numbers each: after any corruption a value stands alongside
    the token that it was made for, or alongside what replaces that token."""
    part = build(members("corruptions")[name])
    assert isinstance(part, Corruption)
    if part.segments > 1:
        batch = {key: np.concatenate([value] * part.segments) for key, value in batch.items()}
    if Field.CENTERS in part.needs:
        batch[Field.CENTERS] = np.arange(5, 12)
    if Field.TEXTS in part.needs:
        batch[Field.TEXTS] = batch[Field.DOCUMENTS] % 2
    batch |= channels_of(part, batch)
    one, two = Channel("test_ids", SIZE).field, Channel("test_pairs", SIZE, shape=(2,)).field
    clean = batch[Field.INPUT_IDS]
    batch |= {one: clean.copy(), two: np.stack([clean, SIZE - clean], axis=-1)}
    given = part.apply(batch, token_ids(), np.random.default_rng(seed))
    ids = given[Field.INPUT_IDS]
    assert given[one].shape == ids.shape and given[two].shape == (*ids.shape, 2)
    assert np.array_equal(given[two], np.stack([given[one], SIZE - given[one]], axis=-1)), "moved in another way"
    kept = ids == given[one]
    if Field.MASKED_POSITIONS in given:
        kept.ravel()[given[Field.MASKED_POSITIONS]] = True
    # what divides a row replaces a token, like a sentinel; a mask may be inserted, and padding has any value
    text = (given.get(Field.ATTENTION_MASK, np.ones_like(ids)) == 1) & (ids != MASK)
    assert (kept | np.isin(ids, (*SENTINELS, END)) | ~text).all(), "a value stands alongside a token of another"
    if part.pairs_segments or part.reorders:
        return  # tokens of other rows have no order among those of this one
    for before, after in zip(clean, (row[of_text] for row, of_text in zip(given[one], text, strict=True)), strict=True):
        rest = iter(before.tolist())
        assert all(value in rest for value in after.tolist()), "the order of the values is that of the tokens"


@pytest.mark.parametrize("name", MASKS)
@given(batch=batches(), seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_what_is_hidden_is_what_is_asked(name: str, batch: Arrays, seed: int) -> None:
    part = build(members("corruptions")[name])
    assert isinstance(part, Corruption)
    batch |= channels_of(part, batch)
    given = part.apply(batch, token_ids(), np.random.default_rng(seed))
    ids, clean, positions = given[Field.INPUT_IDS], batch[Field.INPUT_IDS], given[Field.MASKED_POSITIONS]
    assert (np.diff(positions) > 0).all(), "positions ascend, each once"
    assert np.array_equal(given[Field.MASKED_LABELS], clean.ravel()[positions])
    assert np.isin(np.flatnonzero(ids != clean), positions).all(), "a token changed that nobody asks for"
    special = np.isin(clean, SPECIAL)
    assert np.array_equal(ids[special], clean[special]), "a special token was corrupted"
    assert not np.isin(ids[~special], SPECIAL[:4]).any(), "a special token was drawn"
