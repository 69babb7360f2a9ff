"""Masking of words and of the regions of an image (Su et al. 2020, VL-BERT §3.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import Masking, is_ordinary
from pipelines.vocabulary import Field

VECTORS = Field.of_channel("vectors")


class RegionMask(Masking, name="region_mask"):
    """Select tokens of the text and regions, each by a draw of its own, and hide what selected regions look like.

    A region is the adjacent tokens of one vector that is not zero, as the annotation `vector_column` gives it, and is
    drawn as a whole. Words are predicted with the regions in sight; those of hidden regions, which the detector gave
    them, from the text and the other regions. Of a row in which nothing was drawn, what was nearest is selected. The
    paper masks the pixels before a region's vector is computed, and predicts the detector's class of it.
    """

    paper = "arXiv:1908.08530"
    needs = frozenset({Field.INPUT_IDS, VECTORS})
    provides = Masking.provides | {VECTORS}

    region_rate: float = Option(0.15, gt=0, lt=1)
    """Share of the regions to be predicted; `rate` is that of the words."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean, vectors = batch[Field.INPUT_IDS], batch[VECTORS]
        is_region = np.asarray(vectors.any(-1), dtype=np.bool_)
        rates = np.where(is_region, np.float32(self.region_rate), np.float32(self.rate))
        # a token is drawn where its number is below 1
        draws = random.random(clean.shape, dtype=np.float32) / rates
        draws = draws.ravel()[_first_tokens(vectors, is_region)].reshape(clean.shape)
        draws[~is_ordinary(clean, tokens)] = np.inf
        least = draws.min(1, keepdims=True)
        draws[(draws == least) & np.isfinite(least)] = 0
        positions = np.flatnonzero(draws.ravel() < 1)
        masked = self.mask_positions(batch, positions, tokens, random)
        hidden = vectors.reshape(-1, vectors.shape[-1]).copy()
        hidden[positions] = 0
        return {**masked, VECTORS: hidden.reshape(vectors.shape)}


def _first_tokens(vectors: NDArray[np.float32], is_region: NDArray[np.bool_]) -> NDArray[np.int64]:
    """int64 [B · L]: flattened position of the first token of each token's region, or its own outside regions."""
    begins = np.ones_like(is_region)
    begins[:, 1:] = ~(is_region[:, 1:] & (vectors[:, 1:] == vectors[:, :-1]).all(-1))
    first: NDArray[np.int64] = np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return first
