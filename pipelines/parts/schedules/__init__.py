"""Schedules: how the learning rate moves between the first optimizer step and the last."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pydantic import Field

from pipelines.components import Component


class Schedule(Component):
    """A shape over the steps of a stage."""

    usual: ClassVar[str] = "linear"

    @abstractmethod
    def factor(self, step: int, total: int) -> float:
        """The multiple of the peak rate at optimizer step `step` of `total` (0 ≤ step < total), in [0, 1].

        A pure function: a resumed run asks for the same values.
        """


class Warmed(Schedule):
    """A schedule that rises linearly to its peak, then goes its own way."""

    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the steps in which the rate rises linearly from 0 to its peak."""

    def factor(self, step: int, total: int) -> float:
        rise = round(self.warmup * total)
        # a first step at rate 0 would be lost
        if step < rise:
            return (step + 1) / rise
        return self.fall(max(0.0, (total - step) / max(1, total - rise)))

    @abstractmethod
    def fall(self, left: float) -> float:
        """The multiple of the peak rate when the share `left` of the steps after the rise is still to come: 1 at first."""
