"""Schedules: how the learning rate moves between the first optimizer step and the last."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pipelines.components import Component


class Schedule(Component):
    """A shape over the steps of a stage."""

    usual: ClassVar[str] = "linear"

    @abstractmethod
    def factor(self, step: int, total: int) -> float:
        """The multiple of the peak rate at optimizer step `step` of `total` (0 ≤ step < total), in [0, 1].

        A pure function: a resumed run asks for the same values.
        """
