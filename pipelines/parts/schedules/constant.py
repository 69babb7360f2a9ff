"""Constant: one rate throughout."""

from __future__ import annotations

from pydantic import Field

from pipelines.parts.schedules import Warmed


class Constant(Warmed, name="constant"):
    """The peak rate to the end, as T5 is fine-tuned (Raffel et al. 2020, §3.1.2)."""

    paper = "arXiv:1910.10683"

    warmup: float = Field(0.0, ge=0, lt=1)
    """Share of the steps in which the rate rises linearly from 0 to its peak."""

    def fall(self, left: float) -> float:
        return 1.0
