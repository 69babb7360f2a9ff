"""Slanted triangular schedule: a short rise, a long decay, never zero."""

from __future__ import annotations

import math

from pydantic import Field

from pipelines.parts.schedules import Schedule


class SlantedTriangularSchedule(Schedule, name="slanted_triangular"):
    """ULMFiT's schedule (Howard & Ruder 2018, §3.2, eq. 3).

    With `cut` = ⌊total · cut_frac⌋ and p the height on the triangle, the factor is (1 + p · (ratio − 1)) / ratio. Where
    total · cut_frac is not an integer, equation 3 would reach its minimum before the last step; here it reaches it at
    the end.
    """

    paper = "arXiv:1801.06146"

    cut_frac: float = Field(0.1, gt=0, lt=1)
    """Share of the steps over which the rate rises."""
    ratio: float = Field(32.0, ge=1)
    """Ratio of the peak rate to the lowest rate."""

    def factor(self, step: int, total: int) -> float:
        cut = math.floor(total * self.cut_frac)
        height = step / cut if step < cut else (total - step) / (total - cut)
        return (1 + height * (self.ratio - 1)) / self.ratio
