"""The row before corruption as the target of a decoder: denoising (Lewis et al. 2019, BART §2.2)."""

from __future__ import annotations

import numpy as np

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field


class OriginalAsTarget(Corruption, name="original_as_target"):
    """Let a decoder write the whole row as it was before any corruption, special tokens included."""

    paper = "arXiv:1910.13461"
    needs = frozenset({Field.ORIGINAL_IDS})
    provides = frozenset({Field.TARGET_IDS})

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        original = batch[Field.ORIGINAL_IDS]
        return {**batch, Field.TARGET_IDS: np.where(original == tokens.pad, -100, original)}
