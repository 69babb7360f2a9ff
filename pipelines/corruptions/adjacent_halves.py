"""Two neighbouring pieces of a passage as each other's positive (Giorgi et al. 2021, DeCLUTR §3.1; Logeswaran & Lee 2018)."""

from __future__ import annotations


import numpy as np

from pipelines.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field


class AdjacentHalves(Corruption, name="adjacent_halves"):
    """Every passage gives two rows, its first and its second half; each row names its partner."""

    paper = "arXiv:2006.03659"
    provides = frozenset({Field.PARTNER})
    segments = 2

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        rows = len(batch[Field.INPUT_IDS])
        return {**batch, Field.PARTNER: np.roll(np.arange(rows, dtype=np.int64), rows // 2)}
