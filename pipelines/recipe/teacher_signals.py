"""What an objective reads of a teacher, where that is something else than what it reads of the trained network."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pipelines.parts.objectives import Objective
from pipelines.vocabulary import Signal


@runtime_checkable
class ReadsTeacherOtherwise(Protocol):
    """An objective whose student computes signals that no teacher has."""

    @property
    def teacher_signals(self) -> frozenset[Signal]:
        """Signals of the teacher that `loss` reads with these options."""


def signals_of_teacher(objective: Objective) -> frozenset[Signal]:
    """Signals that the teacher of `objective` has to provide: its own, or those of the trained network."""
    if isinstance(objective, ReadsTeacherOtherwise):
        return objective.teacher_signals
    return objective.required_signals
