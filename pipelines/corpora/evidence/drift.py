"""Drift between two categorical distributions: their distance, and whether sampling explains it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

SIGNIFICANCE = 0.001
"""Level of significance: below this p-value, sampling does not explain a difference."""


@dataclass(frozen=True)
class Drift:
    """Drift between two distributions over the same categories."""

    distance: float
    """Jensen-Shannon distance with logarithms to the base 2: 0 for the same shares, 1 where nothing is shared (Endres
    and Schindelin 2003, doi:10.1109/TIT.2003.813506)."""
    p_value: float
    """p-value of the chi-square test of homogeneity: that two samples of one distribution differ at least as much."""

    def exceeds(self, threshold: float) -> bool:
        """Whether the distance is larger than `threshold` and the difference is significant."""
        return self.distance > threshold and self.p_value < SIGNIFICANCE


def drift(before: Mapping[str, float], now: Mapping[str, float]) -> Drift:
    """Drift between two tables of counts; none where one of them is empty."""
    from scipy.spatial.distance import jensenshannon
    from scipy.stats import chi2_contingency

    kinds = sorted({kind for counts in (before, now) for kind, many in counts.items() if many > 0})
    table = np.array([[counts.get(kind, 0) for kind in kinds] for counts in (before, now)], dtype=np.float64)
    if not kinds or not table.sum(axis=1).all():
        return Drift(0.0, 1.0)
    distance = float(jensenshannon(table[0], table[1], base=2))
    # rounding may leave a tiny negative number under the root when both are equal
    distance = 0.0 if np.isnan(distance) else distance
    return Drift(distance, float(chi2_contingency(table).pvalue) if len(kinds) > 1 else 1.0)
