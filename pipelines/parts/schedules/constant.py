"""Constant learning rate."""

from __future__ import annotations

from pydantic import Field

from pipelines.parts.schedules import WarmupSchedule


class ConstantSchedule(WarmupSchedule, name="constant"):
    """The peak rate until the end, as for fine-tuning T5 (Raffel et al. 2020, §3.1.2)."""

    paper = "arXiv:1910.10683"

    warmup: float = Field(0.0, ge=0, lt=1)
    """Share of the steps over which the rate rises linearly from 0 to its peak."""

    def decay(self, remaining: float) -> float:
        return 1.0
