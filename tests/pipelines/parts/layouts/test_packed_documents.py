"""Whole documents in rows: every token once an epoch, nothing cut that fits, little padding."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import DataError
from pipelines.parts.layouts import Layout, RowSegments, StreamShape
from pipelines.parts.layouts.packed_documents import patterns

PART = Layout.model_validate("packed_documents")


@st.composite
def grounds(draw: st.DrawFn) -> StreamShape:
    """Any documents, each with its end; of some nothing is left but that."""
    closes = draw(st.booleans())
    lengths = draw(st.lists(st.integers(1, 70), min_size=1, max_size=60)) + [draw(st.integers(2, 200))]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    framing = draw(st.integers(1, 3)) if closes else 0
    return StreamShape(starts[:-1], int(starts[-1]), draw(st.integers(1, 40)), draw(st.integers(1, 6)), framing, closes)


def epoch_of(ground: StreamShape, epoch: int, seed: int = 0) -> list[RowSegments]:
    per_epoch = PART.steps_per_epoch(ground)
    return [PART.segments(ground, seed, step) for step in range(epoch * per_epoch, (epoch + 1) * per_epoch)]


@given(ground=grounds(), epoch=st.integers(0, 2))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_an_epoch_holds_every_document_once_cut_only_where_it_is_longer_than_a_row(
    ground: StreamShape, epoch: int
) -> None:
    ends = np.append(ground.starts[1:], ground.tokens) - int(ground.closes)
    wanted = Counter(
        (int(begin), int(min(ground.width, end - begin)))
        for start, end in zip(ground.starts, ends, strict=True)
        for begin in range(start, end, ground.width)
    )
    # one row a step: none is left over behind the last whole batch
    single = StreamShape(ground.starts, ground.tokens, ground.width, 1, ground.framing, ground.closes)
    found: Counter[tuple[int, int]] = Counter()
    for placed in epoch_of(single, epoch):
        assert placed.lengths is not None
        found.update(zip(placed.begins.tolist(), placed.lengths.tolist(), strict=True))
        assert int((placed.lengths + ground.framing).sum()) <= ground.width + ground.framing, "a row has its room"
    assert found == wanted


@given(ground=grounds(), step=st.integers(0, 1000))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_step_is_found_by_itself_and_cut_into_parts(ground: StreamShape, step: int) -> None:
    once = PART.segments(ground, 5, step)
    same = StreamShape(ground.starts.copy(), ground.tokens, ground.width, ground.rows, ground.framing, ground.closes)
    again = PART.segments(same, 5, step)
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))
    assert once.rows is not None and once.lengths is not None and not PART.continues(ground, step)
    assert np.array_equal(np.unique(once.rows), np.arange(ground.rows)), "no row is empty"
    parts = [once.select_rows(row, row + 1) for row in range(ground.rows)]
    assert all(part.rows is not None and not part.rows.any() for part in parts)
    assert np.array_equal(np.concatenate([part.begins for part in parts]), once.begins)


def test_epochs_differ_and_so_do_seeds() -> None:
    lengths = np.random.default_rng(0).integers(2, 60, size=300)
    starts = np.cumsum(lengths) - lengths
    ground = StreamShape(starts, int(lengths.sum()), 30, 4)
    read = [
        np.concatenate([placed.begins for placed in epoch_of(ground, epoch, seed)])
        for epoch, seed in ((0, 0), (1, 0), (0, 1))
    ]
    assert not np.array_equal(read[0], read[1]) and not np.array_equal(read[0], read[2])


def test_little_is_padding() -> None:
    random = np.random.default_rng(0)
    for mean, room in ((30, 128), (120, 512)):
        lengths = np.minimum(random.lognormal(np.log(mean), 0.7, size=20_000).astype(int) + 1, room - 2)
        made = patterns(np.bincount(lengths, minlength=room - 1), room, 2)
        filled = sum(rows * sum(length + 2 for length in pattern) for rows, pattern in made)
        assert filled == (lengths + 2).sum()
        assert filled / (room * sum(rows for rows, _ in made)) > 0.98


def test_texts_that_are_all_empty_are_refused() -> None:
    with pytest.raises(DataError, match="all documents have no tokens"):
        PART.steps_per_epoch(StreamShape(np.arange(5), 5, 8, 2, framing=2, closes=True))
