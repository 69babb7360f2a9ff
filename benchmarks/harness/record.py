"""What is kept of a measurement: one JSON file a benchmark, replaced whole."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from benchmarks.checkouts import ROOT
from pipelines.lineage.disk import write_whole

FOLDER = ROOT / "benchmarks" / "records"
BUSY = 0.05
"""Share of all processors that others may use before a record says that the machine was busy."""


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Goal(Strict):
    """What a figure of a benchmark has to reach."""

    figure: str
    """The name of the figure, as the benchmark gives it."""
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "x"

    def met(self, value: float) -> bool:
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


class Figure(Strict):
    """One measured value. A ratio is of what ours does in a second to what the other does: above 1, ours is faster."""

    name: str
    value: float
    """The median of the rounds."""
    unit: str = "x"
    low: float | None = None
    """Ends of the 95 % interval of the median over rounds."""
    high: float | None = None
    against: str | None = None
    """Of a ratio: what it is a ratio to."""
    cpu: float | None = None
    """Of a ratio: the same with seconds of processor time."""


class Turn(Strict):
    """What one variant did before it was another's turn."""

    units: float
    """Tokens, texts, megabytes: whatever is counted."""
    seconds: float
    cpu: float
    """Seconds of processor time, of all threads."""


class Point(Strict):
    """One place of a plot."""

    x: float
    y: float
    low: float | None = None
    """Ends of the 95 % interval of y."""
    high: float | None = None


class Series(Strict):
    """Points that belong together, by ascending x."""

    name: str
    points: tuple[Point, ...]


class Plot(Strict):
    """Something that grows with something else; both axes are logarithmic. It is a file of its name, so all names differ."""

    name: str
    title: str
    x: str
    """What the horizontal axis counts, with its unit."""
    y: str
    series: tuple[Series, ...]


class Measured(Strict):
    """What a benchmark has found."""

    figures: tuple[Figure, ...]
    turns: dict[str, tuple[Turn, ...]] = {}
    """Variant → its turns, in order: what the ratios were made of."""
    curves: dict[str, tuple[tuple[int, float], ...]] = {}
    """Name → (tokens, loss) as training went on."""
    plots: tuple[Plot, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader must know: what could not be measured, and why."""


class Machine(Strict):
    """Where it was measured."""

    processor: str
    """With the instructions that decide how fast a product is."""
    cores: int
    memory_gib: float
    platform: str


class Company(Strict):
    """What else the machine did meanwhile."""

    load_before: float
    """Processes that ran or waited to, on average over the minute before."""
    others: float
    """Share of all processors that other processes used."""
    stolen: float
    """Share of all processors that the hypervisor gave to others."""

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
    """ISO 8601, UTC, when it ended."""
    seconds: float

    def figure(self, name: str) -> Figure | None:
        return next((one for one in self.measured.figures if one.name == name), None)


def read(name: str, folder: Path = FOLDER) -> Record | None:
    """The record of a benchmark; None where it was not measured."""
    path = folder / f"{name}.json"
    return Record.model_validate_json(path.read_bytes()) if path.exists() else None


def write(record: Record, folder: Path = FOLDER) -> Path:
    """Replace the record of a benchmark: whole, or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.name}.json"
    write_whole(path, record.model_dump_json(indent=1) + "\n", folder / f".{record.name}.part", flushed=True)
    return path
