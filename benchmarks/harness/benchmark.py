"""The base class of benchmarks, and their discovery."""

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
    """Settings of a measurement."""

    quick: bool
    """Only check that the benchmark runs; its figures are meaningless."""
    threads: int
    work: Path
    """An empty folder, removed afterwards."""
    kept: Path | None = None
    """Folder of the finished cases of this and earlier attempts; None where none are kept."""

    def folder(self, name: str) -> Path:
        """Create a folder in `work`."""
        made = self.work / name
        made.mkdir(parents=True)
        return made


class Benchmark(ABC):
    """A benchmark: one file of `benchmarks/`, measured in a separate process."""

    name: ClassVar[str]
    what: ClassVar[str]
    """What is measured and compared, as a sentence of the page."""
    goals: ClassVar[tuple[Goal, ...]] = ()
    slow: ClassVar[bool] = False
    """Whether it takes more than five minutes; slow benchmarks run last."""
    by_hand: ClassVar[dict[str, str]] = {}
    """Command by name of a record that takes too long to be measured with the others. Its points join the same
    plots."""
    environment: ClassVar[dict[str, str]] = {}
    """Environment variables of its process, for libraries that read them at import."""

    def unavailable(self) -> str | None:
        """Why it cannot be measured here, and what to install."""
        return None

    @abstractmethod
    def measure(self, setting: Setting) -> Measured:
        """Run the measurement."""


def all_benchmarks() -> dict[str, Benchmark]:
    """All benchmarks by name, the slow ones last."""
    known: dict[str, Benchmark] = {}
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if module.ispkg or module.name == "__main__":
            continue
        imported = importlib.import_module(f"{benchmarks.__name__}.{module.name}")
        for _, one in inspect.getmembers(imported, inspect.isclass):
            if issubclass(one, Benchmark) and one.__module__ == imported.__name__ and not inspect.isabstract(one):
                known[one.name] = one()
    return dict(sorted(known.items(), key=lambda item: (item[1].slow, item[0])))


def missing(*packages: str, extra: str = "bench") -> str | None:
    """The installation command if one of these packages of an `extra` is missing; else None."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    if not absent:
        return None
    return f"{', '.join(absent)} not installed: pip install -c requirements.lock -e '.[{extra}]'"
