"""Polynomial decay."""

from __future__ import annotations

from pydantic import Field

from pipelines.parts.schedules import WarmupSchedule


class PolynomialSchedule(WarmupSchedule, name="polynomial"):
    """Linear warmup, then polynomial decay (Liu, Rabinovich & Berg 2015, who use power 0.9)."""

    paper = "arXiv:1506.04579"

    power: float = Field(1.0, gt=0)
    """Exponent of the share of remaining steps."""
    end: float = Field(0.0, ge=0, le=1)
    """Multiple of the peak rate at the end of the decay."""

    def decay(self, remaining: float) -> float:
        return float(self.end + (1 - self.end) * remaining**self.power)
