"""Sentences and their neighbours: found, whole, side by side, and never of two documents."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.neighbouring_sentence import IGNORED, SOURCE_IDS, NeighbouringSentence
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import END, SIZE, token_ids

STOP = 7
"""Id of the token that is a full stop."""


def tokens() -> TokenIds:
    return replace(token_ids(), texts=tuple("." if number == STOP else f"w{number}" for number in range(SIZE)))


def batch(*rows: list[int]) -> Arrays:
    ids = np.asarray(rows, dtype=np.int64)
    documents = np.cumsum(ids == END, axis=1) - (ids == END)
    return {Field.INPUT_IDS: ids, Field.DOCUMENTS: documents}


def drawn(part: NeighbouringSentence, given: Arrays, draws: int = 200) -> Counter[tuple[tuple[int, ...], ...]]:
    """How often each source and target of the first row is drawn."""
    found: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for seed in range(draws):
        result = part.apply(given, tokens(), np.random.default_rng(seed))
        pair = (result[SOURCE_IDS][0], result[Field.TARGET_IDS][0])
        found[tuple(tuple(one[one != IGNORED].tolist()) for one in pair)] += 1
    return found


FIRST, SECOND, THIRD = (10, 11, STOP), (12, 13, 14, STOP), (15, 16)


def test_every_neighbour_of_a_row_is_drawn_from_the_right_side() -> None:
    row = batch([*FIRST, *SECOND, *THIRD])
    following = drawn(NeighbouringSentence(side="next", shortest=2), row)
    assert set(following) == {(FIRST, SECOND), (SECOND, THIRD)} and min(following.values()) > 60
    assert set(drawn(NeighbouringSentence(side="previous", shortest=2), row)) == {(SECOND, FIRST), (THIRD, SECOND)}
    either = drawn(NeighbouringSentence(side="either", shortest=2), row)
    assert len(either) == 4 and min(either.values()) > 25


def test_sentences_of_two_documents_are_no_neighbours() -> None:
    row = batch([*FIRST, *SECOND, END, *THIRD])
    assert set(drawn(NeighbouringSentence(shortest=2), row, 40)) == {(FIRST, SECOND)}
    apart = batch([*SECOND, END, *THIRD, 17])
    result = NeighbouringSentence(shortest=2).apply(apart, tokens(), np.random.default_rng(0))
    assert (result[Field.TARGET_IDS] == IGNORED).all(), "there is nothing to write"
    assert result[SOURCE_IDS][0].tolist() == [12, *[IGNORED] * 7], "something has to be read"


def test_a_full_stop_soon_after_another_ends_nothing_and_long_sentences_are_cut() -> None:
    row = batch([10, STOP, 11, 12, 13, STOP, 14, 15, 16, 17])
    assert set(drawn(NeighbouringSentence(shortest=4), row, 20)) == {((10, STOP, 11, 12, 13, STOP), (14, 15, 16, 17))}
    assert set(drawn(NeighbouringSentence(shortest=4, longest=3), row, 20)) == {((10, STOP, 11), (14, 15, 16))}


def test_rows_stay_as_they_are_and_lengths_are_sizes() -> None:
    row = batch([*FIRST, *SECOND, *THIRD])
    result = NeighbouringSentence(shortest=2).apply(row, tokens(), np.random.default_rng(0))
    assert np.array_equal(result[Field.INPUT_IDS], row[Field.INPUT_IDS])
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        NeighbouringSentence(longest=0)
