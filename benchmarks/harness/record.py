"""Records of measurements: one JSON file per benchmark, replaced atomically, and one for each day and kind of processor
on which it was measured."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from benchmarks.checkouts import ROOT
from pipelines.lineage.disk import write_text_atomically

FOLDER = ROOT / "benchmarks" / "records"
DAYS = "days"
"""Name of the folder that has a folder for each benchmark with its records by day."""
BUSY = 0.05
"""Share of all processors used by others above which a record counts the machine as busy."""


Verdict: TypeAlias = Literal["met", "missed", "undecided"]
"""Verdict on a goal, by the interval of its figure."""


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Goal(Strict):
    """The goal for a figure of a benchmark."""

    figure: str
    """The figure's name."""
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "x"

    def verdict(self, figure: Figure) -> Verdict:
        """Whether the whole 95 % interval of a figure is within the goal, nothing of it, or a part."""
        low, high = figure.interval
        least = -math.inf if self.at_least is None else self.at_least
        most = math.inf if self.at_most is None else self.at_most
        if least <= low and high <= most:
            return "met"
        return "missed" if high < least or low > most else "undecided"


class Figure(Strict):
    """One measured value. A ratio divides our rate by that of the other variant: above 1, ours is faster."""

    name: str
    value: float
    """The median of the rounds."""
    unit: str = "x"
    low: float | None = None
    """Ends of the 95 % interval of the median over rounds."""
    high: float | None = None
    against: str | None = None
    """The other variant of a ratio."""
    cpu: float | None = None
    """The same ratio in seconds of processor time."""

    @property
    def interval(self) -> tuple[float, float]:
        """Its ends; the value twice, where it has none."""
        return (self.value if self.low is None else self.low, self.value if self.high is None else self.high)


class Turn(Strict):
    """The work of one variant in one turn."""

    units: float
    """Amount of work: tokens, texts, megabytes, …"""
    seconds: float
    cpu: float
    """Seconds of processor time, over all threads."""


class Point(Strict):
    """One point of a plot."""

    x: float
    y: float
    low: float | None = None
    """Ends of the 95 % interval of y."""
    high: float | None = None


class Series(Strict):
    """A series of points, by ascending x."""

    name: str
    points: tuple[Point, ...]


class Plot(Strict):
    """A plot with two logarithmic axes. Its name is part of a file name, so names are unique."""

    name: str
    title: str
    x: str
    """Label of the horizontal axis, with its unit."""
    y: str
    series: tuple[Series, ...]


class Measured(Strict):
    """The result of a benchmark."""

    figures: tuple[Figure, ...]
    turns: dict[str, tuple[Turn, ...]] = {}
    """Turns by variant, in order: the data of the ratios."""
    curves: dict[str, tuple[tuple[int, float], ...]] = {}
    """Loss curves by name, as (tokens, loss)."""
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the reader, such as what could not be measured and why."""


class Machine(Strict):
    """The machine of a measurement."""

    processor: str
    """Model, with the instruction set extensions that determine the speed of matrix products."""
    cores: int
    memory_gib: float
    platform: str


class Company(Strict):
    """Other load of the machine during a measurement."""

    load_before: float
    """Load average over the minute before."""
    others: float
    """Share of all processors that other processes used."""
    stolen: float
    """Share of all processors that the hypervisor gave to others (steal time)."""

    @property
    def busy(self) -> bool:
        return self.others + self.stolen > BUSY


class Record(Strict):
    """One run of a benchmark."""

    name: str
    what: str
    measured: Measured
    threads: int
    machine: Machine
    company: Company
    versions: dict[str, str]
    commit: str
    date: str
    """End of the measurement, ISO 8601, UTC."""
    seconds: float

    def figure(self, goal: Goal) -> Figure | None:
        """The figure of a goal: of its name and its unit, for a ratio and a rate may share a name."""
        return next((one for one in self.measured.figures if (one.name, one.unit) == (goal.figure, goal.unit)), None)

    @property
    def day(self) -> str:
        """YYYY-MM-DD, UTC."""
        return self.date[:10]

    @property
    def summary(self) -> Record:
        """The record without its turns, curves and plots."""
        return self.model_copy(update={"measured": Measured(figures=self.measured.figures, notes=self.measured.notes)})


def read(name: str, folder: Path = FOLDER) -> Record | None:
    """The record of a benchmark; None when it was not measured."""
    path = folder / f"{name}.json"
    return Record.model_validate_json(path.read_bytes()) if path.exists() else None


def read_days(name: str, folder: Path = FOLDER) -> list[Record]:
    """What was measured of a benchmark, the last of each day and kind of processor, by date; records without turns,
    curves and plots. A kind of processor has the records of the benchmark as it is described today, and what was
    measured before only where there is none: figures of the same name are the same comparison."""
    last = read(name, folder)
    kept = [Record.model_validate_json(path.read_bytes()) for path in (folder / DAYS / name).glob("*.json")]
    by_day = {(one.machine.processor, one.day): one for one in kept}
    if last is not None:
        by_day[last.machine.processor, last.day] = last.summary
    of_today = {one.machine.processor for one in by_day.values() if last is None or one.what == last.what}
    counted = (
        one for one in by_day.values() if last is None or one.what == last.what or one.machine.processor not in of_today
    )
    return sorted(counted, key=lambda one: one.date)


def write(record: Record, folder: Path = FOLDER) -> Path:
    """Replace the record of a benchmark atomically, and that of its day and kind of processor; the summary of the one
    that it replaces stays."""
    path = folder / f"{record.name}.json"
    days = folder / DAYS / record.name
    days.mkdir(parents=True, exist_ok=True)
    before = read(record.name, folder)
    if before is not None and not (kept := days / _file_of_day(before)).exists():
        _write(before.summary, kept)
    _write(record.summary, days / _file_of_day(record))
    _write(record, path)
    return path


def _file_of_day(record: Record) -> str:
    kind = re.sub(r"\W+", "-", record.machine.processor).strip("-").lower()
    return f"{record.day}-{kind}.json"


def _write(record: Record, file: Path) -> None:
    write_text_atomically(
        file, record.model_dump_json(indent=1) + "\n", file.with_name(f".{file.stem}.part"), flushed=True
    )
