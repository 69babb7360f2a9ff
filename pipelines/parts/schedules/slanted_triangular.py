"""Slanted triangular: a short rise, a long fall, and never zero."""

from __future__ import annotations

import math

from pydantic import Field

from pipelines.parts.schedules import Schedule


class SlantedTriangular(Schedule, name="slanted_triangular"):
    """ULMFiT's schedule (Howard & Ruder 2018, §3.2, eq. 3).

    With `cut` = ⌊total · cut_frac⌋ and p the height on the triangle, the factor is (1 + p · (ratio − 1)) / ratio. Where
    total · cut_frac is no whole number, equation 3 would end its fall before the last step; here it ends with it.
    """

    paper = "arXiv:1801.06146"

    cut_frac: float = Field(0.1, gt=0, lt=1)
    """Share of the steps in which the rate rises."""
    ratio: float = Field(32.0, ge=1)
    """How many times the lowest rate the peak is."""

    def factor(self, step: int, total: int) -> float:
        cut = math.floor(total * self.cut_frac)
        height = step / cut if step < cut else (total - step) / (total - cut)
        return (1 + height * (self.ratio - 1)) / self.ratio
