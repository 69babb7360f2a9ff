"""What a fault is. One kind is one file of `benchmarks.faults.kinds`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

from benchmarks.faults.attempt import Ending
from benchmarks.faults.judge import Snapshot
from benchmarks.faults.regime import Checkout


@dataclass(frozen=True)
class Strike:
    """A run that was disturbed and has ended."""

    struck: str
    """What was struck, and when."""
    ending: Ending
    finished: Snapshot
    """What must not be computed again."""

    @classmethod
    def unprovoked(cls, checkout: Checkout, ending: Ending) -> Self | None:
        """Of a run that ended before it was struck: None where it ended well; an error is as telling as after a strike."""
        return None if ending.success else cls("nothing: it ended by itself", ending, Snapshot.of(checkout.store))


def moment(share: float, finished: Snapshot) -> str:
    """When a run was struck, for the report."""
    return f"after {share:.0%} of an undisturbed run's work: {finished}"


class Fault(ABC):
    """A kind of fault."""

    name: ClassVar[str]
    description: ClassVar[str]
    """What is done, in a line of the report."""
    cases: ClassVar[int]
    """How many are wanted at least."""
    row: ClassVar[int] = 1
    """Strikes at one checkout, one after another: what fails once fails again before it has recovered."""
    standing: ClassVar[bool] = True
    """Whether runs use a Prefect server that stays up; else each has a temporary one of its own."""
    devices: ClassVar[int] = 1
    """Ranks that train together; several train the first stage only, as every stage starts them anew."""
    tracked: ClassVar[bool] = True
    """Whether MLflow must tell the whole story once everything is done; else when the next run has begun."""

    def unavailable(self) -> str | None:
        """Why it cannot be done here."""
        return None

    @abstractmethod
    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        """Disturb a run of the regime, and wait for its end; None where it was done before it was struck."""

    def fix(self, checkout: Checkout, ending: Ending) -> None:  # noqa: B027  # most errors ask for another run only
        """Do what the error of a run asks for, before it is run again."""

    def after(self, checkout: Checkout) -> None:  # noqa: B027  # most kinds leave nothing
        """Put away what a case has left: mounts, servers."""
