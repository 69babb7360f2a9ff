"""Polynomial: a power of what is left to do."""

from __future__ import annotations

from pydantic import Field

from pipelines.parts.schedules import Warmed


class Polynomial(Warmed, name="polynomial"):
    """A linear rise, then a polynomial fall (Liu, Rabinovich & Berg 2015, whose power is 0.9)."""

    paper = "arXiv:1506.04579"

    power: float = Field(1.0, gt=0)
    """Exponent of the share of steps still to come."""
    end: float = Field(0.0, ge=0, le=1)
    """Multiple of the peak rate that the fall ends at."""

    def fall(self, left: float) -> float:
        return float(self.end + (1 - self.end) * left**self.power)
