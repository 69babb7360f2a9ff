"""How far the seeds of two stages are apart: the quotient of two standard deviations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipelines.errors import DataError
from pipelines.judging.certainty.contrasts import ContrastInterval
from pipelines.judging.certainty.variance_components import CONFIDENCE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def spread_quotient(
    first: Sequence[float] | NDArray[np.float64],
    second: Sequence[float] | NDArray[np.float64],
    confidence: float = CONFIDENCE,
) -> ContrastInterval:
    """log(s₁ / s₂), with sᵢ the standard deviation of a sample, and its interval.

    For normal samples (s₁² / σ₁²) / (s₂² / σ₂²) has the distribution F with n₁ − 1 and n₂ − 1 degrees of freedom, so
    that the interval holds whatever the means (Snedecor & Cochran 1989, §6.12). The items of a test set are the same
    for all seeds: what they add to the spread is not resampled, and the interval is about this test set.

    Raises DataError for a sample of fewer than two values, and for one without spread.
    """
    import numpy as np
    from scipy.stats import f as quotients

    for sample in (first, second):
        if len(sample) < 2 or float(np.ptp(np.asarray(sample))) == 0:
            raise DataError(
                f"{len(sample)} seeds with the figures {', '.join(f'{value:.4g}' for value in sample[:5])} have no "
                "spread to compare; train more seeds, or use the form greater"
            )
    value = math.log(np.std(first, ddof=1) / np.std(second, ddof=1))
    tail, one, two = (1 + confidence) / 2, len(first) - 1, len(second) - 1
    low = value - math.log(quotients.ppf(tail, one, two)) / 2
    return ContrastInterval(value, low, value + math.log(quotients.ppf(tail, two, one)) / 2)
