"""What a benchmark is, and where they are found."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import benchmarks
from benchmarks.harness.record import Goal, Measured


@dataclass(frozen=True)
class Setting:
    """How it is measured."""

    quick: bool
    """As little as shows that it runs; its figures say nothing."""
    threads: int
    work: Path
    """An empty folder, removed afterwards."""

    def folder(self, name: str) -> Path:
        """A new folder in `work`."""
        made = self.work / name
        made.mkdir(parents=True)
        return made


class Benchmark(ABC):
    """Something that is measured. One is one file of `benchmarks/`; it is measured in a process of its own."""

    name: ClassVar[str]
    what: ClassVar[str]
    """What is measured against what, in a sentence of the page."""
    goals: ClassVar[tuple[Goal, ...]] = ()
    slow: ClassVar[bool] = False
    """Whether it takes more than five minutes: the slow ones come last."""
    by_hand: ClassVar[dict[str, str]] = {}
    """Record that takes too long to be measured with the others → the command that makes it. Its points are in the same plots."""
    environment: ClassVar[dict[str, str]] = {}
    """Variables of its process, which libraries read when they are imported."""

    def unavailable(self) -> str | None:
        """Why it cannot be measured here, and what to install."""
        return None

    @abstractmethod
    def measure(self, setting: Setting) -> Measured:
        """Measure."""


def all_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark by name, the slow ones last."""
    known: dict[str, Benchmark] = {}
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.ispkg or module.name == "__main__":
            continue
        imported = importlib.import_module(f"{benchmarks.__name__}.{module.name}")
        for _, one in inspect.getmembers(imported, inspect.isclass):
            if issubclass(one, Benchmark) and one.__module__ == imported.__name__ and not inspect.isabstract(one):
                known[one.name] = one()
    return dict(sorted(known.items(), key=lambda item: (item[1].slow, item[0])))


def missing(*packages: str) -> str | None:
    """What to do where one of these packages of the extra `bench` is not installed."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    if not absent:
        return None
    return f"{', '.join(absent)} not installed: pip install -c requirements.lock -e '.[bench]'"
