"""Where rows begin that are one piece of the stream: windows as they always were, and streams that go on."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipelines.parts.layouts import Layout, StreamShape
from pipelines.vocabulary import Field
from tests.contracts.families import build, members

Stream: TypeAlias = tuple[NDArray[np.int64], int, int, int, int]
"""Starts, tokens, width, rows, seed."""
EVERY = pytest.mark.parametrize(
    "part",
    [part for member in members("layouts").values() if not (part := build(member)).needs_abilities],
    ids=lambda part: part.name,
)


@st.composite
def streams(draw: st.DrawFn) -> Stream:
    """A stream of at least rows + 2 windows, as batches are made from."""
    width, rows = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    tokens = draw(st.integers((rows + 2) * width, (rows + 2) * width + 2000))
    places = draw(st.sets(st.integers(1, tokens - 1), max_size=20)) if tokens > 1 else set()
    return np.asarray([0, *sorted(places)]), tokens, width, rows, draw(st.integers(0, 2**32))


def everywhere(part: Layout, stream: Stream, epoch: int) -> NDArray[np.int64]:
    """[steps, rows] of an epoch."""
    *laid, seed = stream
    ground = StreamShape(*laid)
    per_epoch = part.steps_per_epoch(ground)
    steps = range(epoch * per_epoch, (epoch + 1) * per_epoch)
    return np.stack([part.segments(ground, seed, step).begins for step in steps])


@EVERY
@given(stream=streams(), step=st.integers(0, 3000))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_layout_is_a_pure_function_that_stays_in_its_stream(part: Layout, stream: Stream, step: int) -> None:
    starts, tokens, width, rows, seed = stream
    before, ground = starts.copy(), StreamShape(*stream[:4])
    once, again = (part.segments(ground, seed, step).begins for _ in range(2))
    assert np.array_equal(once, again) and np.array_equal(starts, before)
    assert once.shape == (rows,) and once.dtype == np.int64 and once.min() >= 0 and once.max() <= tokens - width
    assert not part.continues(ground, 0)


@EVERY
@given(stream=streams(), epoch=st.integers(0, 3))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_an_epoch_reads_the_stream_once(part: Layout, stream: Stream, epoch: int) -> None:
    _, tokens, width, rows, seed = stream
    assume(tokens // rows >= 2 * width)  # smaller parts have no room for every offset
    without_documents = (np.zeros(1, dtype=np.int64), tokens, width, rows, seed)
    begins = np.sort(everywhere(part, without_documents, epoch).ravel())
    # the first window of all may snap to the only document, which begins the stream
    assert np.all(np.diff(begins[1:]) >= width), "no token is read twice"
    lost = tokens - width * len(begins)
    assert lost < width * (3 * rows + 3), "at the ends of the stream, or of its parts, and in a last partial batch"


@given(stream=streams(), epoch=st.integers(0, 3))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_windows_are_all_of_a_grid_each_snapped_to_its_document(stream: Stream, epoch: int) -> None:
    starts, tokens, width, windows, seed = stream
    per_epoch = max(1, (tokens // width - 2) // windows)
    phase = np.random.default_rng([seed, 3, epoch]).integers(width)
    grid = phase + width * np.arange(per_epoch * windows, dtype=np.int64)
    document = starts[np.searchsorted(starts, grid, side="right") - 1]
    snapped = np.where(grid - document < width // 2, document, grid)
    part = Layout.default()
    assert part.framed and part.steps_per_epoch(StreamShape(*stream[:4])) == per_epoch
    assert np.array_equal(np.sort(everywhere(part, stream, epoch).ravel()), np.sort(snapped))


@given(stream=streams(), epoch=st.integers(0, 2))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_contiguous_row_continues_itself_within_an_epoch(stream: Stream, epoch: int) -> None:
    width, ground = stream[2], StreamShape(*stream[:4])
    part = Layout.model_validate("contiguous")
    begins = everywhere(part, stream, epoch)
    assert np.all(np.diff(begins, axis=0) == width)
    per_epoch = len(begins)
    says = [part.continues(ground, epoch * per_epoch + place) for place in range(per_epoch)]
    assert says == [False] + [True] * (per_epoch - 1)
    assert part.provides == {Field.MEMORY} and not part.framed


@EVERY
def test_epochs_differ(part: Layout) -> None:
    stream = (np.zeros(1, dtype=np.int64), 10_000, 50, 4, 0)
    assert not np.array_equal(everywhere(part, stream, 0), everywhere(part, stream, 1))
