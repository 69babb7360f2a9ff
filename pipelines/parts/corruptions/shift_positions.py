"""Shifted absolute positions (Kiyono et al. 2021, SHAPE §3), to train all position embeddings with short rows."""

from __future__ import annotations

import numpy as np
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field


class ShiftPositions(Corruption, name="shift_positions"):
    """Shift the positions of each row by a random offset, so that it ends before `positions`.

    The first token of a row stays at position 0. A backbone trained on rows of 64 tokens can then be fine-tuned on
    texts of `positions` tokens.
    """

    paper = "arXiv:2109.05644"
    provides = frozenset({Field.POSITION_IDS})

    positions: int = Option(gt=1)
    """Number of positions to train; at most those of the backbone."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        rows, length = batch[Field.INPUT_IDS].shape
        offsets = random.integers(max(1, self.positions - length + 1), size=(rows, 1))
        positions = np.arange(length, dtype=np.int64) + offsets
        positions[:, 0] = 0
        return {**batch, Field.POSITION_IDS: positions}
