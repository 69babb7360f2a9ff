"""Two adjacent halves of a passage as positive pair for contrastive learning (Giorgi et al. 2021, DeCLUTR §3.1;
Logeswaran & Lee 2018)."""

from __future__ import annotations

import numpy as np
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field


class AdjacentHalves(Corruption, name="adjacent_halves"):
    """Split every window into two rows, its first and second half; halves that share a document are partners."""

    paper = "arXiv:2006.03659"
    needs = frozenset({Field.INPUT_IDS, Field.DOCUMENTS})
    provides = frozenset({Field.PARTNER})
    segments = 2

    share: float = Option(0.5, ge=0, le=1)
    """Minimum share of each half that belongs to the document at the middle of the window, for both to be partners."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        first, second = np.split(batch[Field.DOCUMENTS], 2)
        shared = np.minimum((first == first[:, -1:]).mean(1), (second == first[:, -1:]).mean(1)) >= self.share
        partner = np.roll(np.arange(2 * len(first), dtype=np.int64), len(first))
        return {**batch, Field.PARTNER: np.where(np.tile(shared, 2), partner, -1)}
