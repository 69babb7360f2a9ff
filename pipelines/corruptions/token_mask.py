"""Random token masking, drawn anew every time a text is read (Devlin et al. 2018, §3.1; dynamic: Liu et al. 2019, §4.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from typing import Self


class TokenMask(Corruption, name="token_mask"):
    """Choose a share of each row's tokens to be predicted; most become the mask token, some a random one.

    The number chosen in a row is exactly round(rate · ordinary tokens), at least one, instead of BERT's independent
    draws: batch shapes stay the same from step to step and the expected share is the same.
    """

    paper = "arXiv:1810.04805"
    provides = frozenset({Field.MASKED_POSITIONS, Field.MASKED_LABELS})

    rate: float = Option(0.15, gt=0, lt=1)
    """Share of a row's ordinary tokens to be predicted."""
    mask: float = Option(0.8, ge=0, le=1)
    """Share of those that become the mask token."""
    random: float = Option(0.1, ge=0, le=1)
    """Share of those that become a random ordinary token; the rest stay as they are."""

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.mask + self.random > 1:
            raise ValueError("mask and random are shares of the chosen tokens: their sum is at most 1")
        return self

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        ordinary = ~np.isin(clean, tokens.special)
        draws = np.where(ordinary, random.random(clean.shape, dtype=np.float32), np.float32(2))
        wanted = np.maximum(np.rint(self.rate * ordinary.sum(1)).astype(np.int64), 1)
        most = int(wanted.max())
        candidates = np.argpartition(draws, min(most, draws.shape[1] - 1), axis=1)[:, :most]
        # a row that needs fewer than the fullest one takes its smallest draws
        order = np.argsort(np.take_along_axis(draws, candidates, 1), axis=1)
        candidates = np.take_along_axis(candidates, order, 1)
        keep = (np.arange(most) < wanted[:, None]) & (np.take_along_axis(draws, candidates, 1) < 2)
        positions = np.sort((candidates + np.arange(len(clean))[:, None] * clean.shape[1])[keep])

        labels = clean.ravel()[positions]
        corrupted = clean.ravel().copy()
        fate = random.random(len(positions))
        corrupted[positions[fate < self.mask]] = tokens.mask
        replaced = positions[(fate >= self.mask) & (fate < self.mask + self.random)]
        ordinary_ids = np.setdiff1d(np.arange(tokens.size), tokens.special)
        corrupted[replaced] = random.choice(ordinary_ids, len(replaced))
        return {
            **batch,
            Field.INPUT_IDS: corrupted.reshape(clean.shape),
            Field.MASKED_POSITIONS: positions,
            Field.MASKED_LABELS: labels,
        }
