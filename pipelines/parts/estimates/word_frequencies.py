"""Noise distribution and subsampling: what follows from how frequent words are (Mikolov et al. 2013, arXiv:1310.4546,
§2.2 and §2.3).

Shapes: V words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.parts.estimates import TokenFile

STATE = "state.npz"
"""File of a pass over a text in the folder of its unit."""


def noise_probabilities(text: TokenFile, power: float) -> NDArray[np.float64]:
    """float64 [V]: counts to `power`, as shares; 0 for special tokens."""
    counts = np.asarray(text.counts, dtype=np.float64)
    counts[list(text.special)] = 0
    weights = np.where(counts > 0, counts**power, 0.0)
    return np.asarray(weights / weights.sum())


def kept_shares(text: TokenFile, threshold: float) -> NDArray[np.float64]:
    """float64 [V]: probability that an occurrence is kept, √(t / f) + t / f; 0 for special tokens."""
    counts = np.asarray(text.counts, dtype=np.float64)
    counts[list(text.special)] = 0
    if not threshold:
        return np.where(counts > 0, 1.0, 0.0)
    share = np.divide(threshold * counts.sum(), counts, out=np.zeros_like(counts), where=counts > 0)
    return np.where(counts > 0, np.minimum(1.0, np.sqrt(share) + share), 0.0)
