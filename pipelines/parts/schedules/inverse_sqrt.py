"""Inverse square root decay, which does not depend on the total number of steps."""

from __future__ import annotations

import math

from pydantic import Field

from pipelines.parts.schedules import Schedule


class InverseSqrtSchedule(Schedule, name="inverse_sqrt"):
    """Linear warmup, then decay with the inverse square root of the steps done (Vaswani et al. 2017, §5.3, eq. 3).

    T5 (Raffel et al. 2020, §3.1.2) stays at the peak during warmup instead of rising to it: `flat`.
    """

    paper = "arXiv:1706.03762"

    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the steps after which the rate decays."""
    flat: bool = False
    """Whether the rate is at its peak during warmup; otherwise it rises to it linearly from 0."""

    def factor(self, step: int, total: int) -> float:
        warmup, done = max(1, round(self.warmup * total)), step + 1
        if done < warmup:
            return 1.0 if self.flat else done / warmup
        return math.sqrt(warmup / done)
