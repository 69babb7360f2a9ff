"""Restartable parallel work: a finished unit is never computed again, an unfinished one leaves nothing behind.

    folders = run_units([CleanShard("00000", …), CleanShard("00001", …)], home, processes=2)

Every unit writes into a folder of its own, which is given its name only when the unit is complete. After a kill at any
moment, the same call computes the missing units. A unit depends only on its own fields, so that its result is
independent of parallelism, order and location: in local processes, or on the engine of the block

    with using_engine(load_runtime(root).engine):
        run_units(…)
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from pipelines.corpora.engines import Engine
from pipelines.lineage.disk import flush

ALONE_BELOW = 32 * 2**20
"""Bytes of input below which a second process costs more time than it saves."""


class WorkUnit(Protocol):
    """A picklable unit of work: an instance of a frozen dataclass defined in a module."""

    @property
    def name(self) -> str:
        """Name of the unit's folder; unique among the units of a call."""

    def __call__(self, folder: Path) -> None:
        """Write the result into `folder`, which exists, is empty, and is kept only if this returns."""


def run_units(units: Sequence[WorkUnit], home: Path, processes: int) -> list[Path]:
    """Compute the units that are not finished in `home`, and return the folders of all units in order.

    Raises the exception of the first unit that fails, and DataError when a process is killed. Other units may or may
    not be finished; a later call computes the rest.
    """
    home.mkdir(parents=True, exist_ok=True)
    for leftover in home.glob(".unfinished-*"):
        shutil.rmtree(leftover)
    waiting = [unit for unit in units if not (home / unit.name).is_dir()]
    if processes <= 1 or len(waiting) <= 1:
        for number, unit in enumerate(waiting, 1):
            finish_unit(unit, home)
            report_units(number, len(waiting))
    else:
        (_engine.get() or Engine.default()).compute(waiting, home, processes)
    return [home / unit.name for unit in units]


@contextmanager
def using_engine(engine: Engine) -> Iterator[None]:
    """Compute units on `engine` within this block. Like joblib's backend, it belongs to the machine, not to the
    caller."""
    before = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(before)


@contextmanager
def reporting(report: Callable[[str], None]) -> Iterator[None]:
    """Within this block, call `report` with a line after each finished unit."""
    before = _report.set(report)
    try:
        yield
    finally:
        _report.reset(before)


def report_units(done: int, total: int) -> None:
    """Report that `done` of `total` units are finished; of a single unit there is nothing to report."""
    if total > 1 and (report := _report.get()) is not None:
        report(f"{done:,} of {total:,} parts")


_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)
_report: ContextVar[Callable[[str], None] | None] = ContextVar("report", default=None)


def finish_unit(unit: WorkUnit, home: Path) -> None:
    """Compute one unit and rename its folder. If another process has finished the same unit meanwhile, because the
    engine believed a machine lost, that folder is kept: both have the same content."""
    temporary = Path(tempfile.mkdtemp(prefix=f".unfinished-{unit.name}-", dir=home))
    try:
        unit(temporary)
        for file in temporary.rglob("*"):
            if file.is_file():
                flush(file)
        try:
            os.replace(temporary, home / unit.name)
        except OSError:
            if not (home / unit.name).is_dir():
                raise
            shutil.rmtree(temporary)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
