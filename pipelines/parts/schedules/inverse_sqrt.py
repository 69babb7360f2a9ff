"""Inverse square root: a fall that needs no end."""

from __future__ import annotations

import math

from pydantic import Field

from pipelines.parts.schedules import Schedule


class InverseSqrt(Schedule, name="inverse_sqrt"):
    """A linear rise, then a fall with the square root of the steps done (Vaswani et al. 2017, §5.3, eq. 3).

    T5 (Raffel et al. 2020, §3.1.2) stays at the peak instead of rising to it: `flat`.
    """

    paper = "arXiv:1706.03762"

    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the steps after which the rate falls."""
    flat: bool = False
    """Whether the rate stands at its peak until then; else it rises to it linearly from 0."""

    def factor(self, step: int, total: int) -> float:
        rise, done = max(1, round(self.warmup * total)), step + 1
        if done < rise:
            return 1.0 if self.flat else done / rise
        return math.sqrt(rise / done)
