"""The base class of faults. Kinds are defined in `benchmarks.faults.kinds`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Self

from benchmarks.faults.attempt import Attempt, Ending
from benchmarks.faults.judge import Snapshot
from benchmarks.faults.regime import RECIPE, Checkout


@dataclass(frozen=True)
class Strike:
    """A disturbed run that has ended."""

    struck: str
    """The injected fault, and when."""
    ending: Ending
    finished: Snapshot
    """Finished work, which must not be computed again."""

    @classmethod
    def unprovoked(cls, checkout: Checkout, ending: Ending) -> Self | None:
        """The strike of a run that ended before the fault: None for a success; an error counts like one after a
        fault."""
        return None if ending.success else cls("nothing: it ended by itself", ending, Snapshot.of(checkout.store))


@dataclass(frozen=True)
class Moment:
    """The time of a fault: a share of an undisturbed run's processor time, and later if too little is finished."""

    share: float
    finished: int
    """Least number of published steps, results and checkpoints that the fault could lose."""

    @classmethod
    def draw(cls, random: Random) -> Self:
        """Most of a short run is start-up, in which nothing can be lost: three faults in four wait until something is
        finished."""
        share = random.random()
        return cls(share, random.choice((0, 1, 2, 3)))

    def reached(self, attempt: Attempt, checkout: Checkout) -> bool:
        """Whether it is time."""
        if attempt.cpu() < self.share * checkout.cpu:
            return False
        return not self.finished or len(Snapshot.of(checkout.store)) >= self.finished

    def described(self, finished: Snapshot) -> str:
        """The time, for the report."""
        return f"after {self.share:.0%} of an undisturbed run's work: {finished}"


class Fault(ABC):
    """A kind of fault."""

    name: ClassVar[str]
    description: ClassVar[str]
    """Description of the fault, one line of the report."""
    cases: ClassVar[int]
    """Required number of cases."""
    recipe: ClassVar[str] = RECIPE
    """The recipe that is disturbed: a file of `benchmarks/faults/recipes`."""
    row: ClassVar[int] = 1
    """Number of consecutive faults in one checkout: a run fails again before it has recovered."""
    standing: ClassVar[bool] = True
    """Whether runs use a permanent Prefect server; else each starts a temporary one."""
    devices: ClassVar[int] = 1
    """Number of ranks; several ranks train only the first stage, because every stage restarts them."""
    tracked: ClassVar[bool] = True
    """Whether MLflow must be complete when everything is done; else once the next run has started."""

    def unavailable(self) -> str | None:
        """Why the fault cannot be injected on this machine; None if it can."""
        return None

    @abstractmethod
    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        """Disturb a run of the regime, and wait for its end; None if it finished before the fault."""

    def fix(self, checkout: Checkout, ending: Ending) -> None:  # noqa: B027  # most errors only require another run
        """Follow the instructions in a run's error, before it is run again."""

    def after(self, checkout: Checkout) -> None:  # noqa: B027  # most kinds have nothing to clean up
        """Clean up after a case: mounts, servers."""
