"""Positions begin again with every text, whatever layout counted them."""

from __future__ import annotations

import numpy as np

from pipelines.parts.corruptions import Arrays
from pipelines.parts.corruptions.restart_positions import RestartPositions
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import token_ids

TEXTS = [[0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0]]


def restarted(**fields: list[list[int]]) -> list[list[int]]:
    batch: Arrays = {Field.INPUT_IDS: np.full((2, 12), 9), Field.TEXTS: np.asarray(TEXTS)}
    batch |= {Field(name): np.asarray(value) for name, value in fields.items()}
    result = RestartPositions().apply(batch, token_ids(), np.random.default_rng(0))[Field.POSITION_IDS]
    rows: list[list[int]] = result.tolist()
    return rows


def test_rows_of_any_texts() -> None:
    # the first row is the example of the paper's figure 1
    assert restarted() == [[0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 2, 3, 0, 1, 0, 1, 2]]


def test_positions_of_a_layout_go_on() -> None:
    """A layout counts from 0 in every document; the second row begins with documents of one text."""
    counted = [[0, 1, 2, 0, 1, 2, 3, 4, 5, 6, 7, 8], [0, 1, 0, 0, 1, 2, 3, 4, 5, 0, 1, 2]]
    assert restarted(position_ids=counted) == [
        [0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4, 5],
        [0, 1, 0, 0, 1, 2, 3, 0, 1, 0, 1, 2],
    ]
