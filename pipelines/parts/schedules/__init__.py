"""Learning-rate schedules: the multiple of the peak rate at every optimizer step of a stage."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pydantic import Field

from pipelines.components import Component


class Schedule(Component):
    """A learning-rate schedule over the steps of a stage."""

    default_name: ClassVar[str] = "linear"

    @abstractmethod
    def factor(self, step: int, total: int) -> float:
        """Multiple of the peak rate at optimizer step `step` of `total` (0 ≤ step < total), in [0, 1].

        A pure function, so that a resumed run gets the same values.
        """


class WarmupSchedule(Schedule):
    """A schedule with linear warmup, followed by a decay that the member defines."""

    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the steps over which the rate rises linearly from 0 to its peak."""

    def factor(self, step: int, total: int) -> float:
        warmup = round(self.warmup * total)
        # step + 1: a first step at rate 0 would be wasted
        if step < warmup:
            return (step + 1) / warmup
        return self.decay(max(0.0, (total - step) / max(1, total - warmup)))

    @abstractmethod
    def decay(self, remaining: float) -> float:
        """Multiple of the peak rate when the share `remaining` of the steps after warmup is still to come: 1 for 1."""
