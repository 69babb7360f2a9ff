"""Duration of the commands that a user runs in the first ten minutes."""

from __future__ import annotations

import shutil
from typing import ClassVar

from benchmarks.checkouts import ROOT, checkout, cursus
from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.turns import median


def twice(with_data: bool, *words: str) -> tuple[float, float]:
    """Seconds that a command takes in a fresh checkout, and when it is repeated."""
    folder = checkout(with_data)
    try:
        return cursus(folder, *words), cursus(folder, *words)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Help(Benchmark):
    name = "help"
    what = "`cursus --help`: imports are lazy."
    goals: ClassVar[tuple[Goal, ...]] = (Goal(figure="cursus --help", at_most=0.5, unit="s"),)

    def measure(self, setting: Setting) -> Measured:
        cursus(ROOT, "--help")
        took = [cursus(ROOT, "--help") for _ in range(2 if setting.quick else 9)]
        return Measured(figures=(median("cursus --help", took, "s"),))


class Smoke(Benchmark):
    name = "smoke"
    what = (
        "`cursus run --smoke` in a fresh checkout with prepared data, and again with everything in the store; no "
        "server is running."
    )
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure="cursus run --smoke", at_most=60, unit="s"),
        Goal(figure="cursus run --smoke, all cached", at_most=1, unit="s"),
    )

    def measure(self, setting: Setting) -> Measured:
        first, second = twice(True, "run", "--smoke")
        return Measured(
            figures=(
                Figure(name="cursus run --smoke", value=first, unit="s"),
                Figure(name="cursus run --smoke, all cached", value=second, unit="s"),
            )
        )


class Data(Benchmark):
    name = "data"
    what = "`cursus data` from nothing, and with nothing to do."
    slow = True

    def measure(self, setting: Setting) -> Measured:
        first, second = twice(False, "data")
        return Measured(
            figures=(
                Figure(name="cursus data", value=first, unit="s"),
                Figure(name="nothing to do", value=second, unit="s"),
            )
        )


class Run(Benchmark):
    name = "run"
    what = "`cursus run` in a fresh checkout, data included, and again with everything in the store."
    slow = True
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure="cursus run, data included", at_most=10, unit="min"),
        Goal(figure="cursus run, all cached", at_most=1, unit="s"),
    )

    def measure(self, setting: Setting) -> Measured:
        first, second = twice(False, "run", *(["--smoke"] if setting.quick else []))
        return Measured(
            figures=(
                Figure(name="cursus run, data included", value=first / 60, unit="min"),
                Figure(name="cursus run, all cached", value=second, unit="s"),
            )
        )
