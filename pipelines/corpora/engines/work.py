"""Restartable work, many units at a time: what is finished is never computed twice, what is not leaves nothing behind.

    folders = worked([CleanShard("00000", …), CleanShard("00001", …)], home, processes=2)

Every unit of work writes into a folder of its own, which gets its name only when the unit is done. Killed at any moment, the
same call goes on with the units that are missing. A unit sees nothing but its own fields, so that what it writes does not
depend on how many run beside it, in which order, or where: in processes of this machine, or on the engine of the block

    with computed_on(load_runtime(root).engine):
        worked(…)
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

from pipelines.corpora.engines import Engine
from pipelines.lineage.disk import flush

ALONE_BELOW = 32 * 2**20
"""Bytes of input under which a second process costs more time than it saves."""


class Unit(Protocol):
    """A picklable piece of work: an instance of a frozen dataclass of some module."""

    @property
    def name(self) -> str:
        """Names the unit's folder; unique among the units of a call."""

    def __call__(self, folder: Path) -> None:
        """Write everything into `folder`, which is there and empty, and is kept only if this returns."""


def worked(units: Sequence[Unit], home: Path, processes: int) -> list[Path]:
    """The finished folder of every unit, in their order; only units that are not finished in `home` are computed.

    Raises what the first unit that fails raises, and DataError when a process is killed. Other units are finished or left
    undone; either way a later call goes on from there.
    """
    home.mkdir(parents=True, exist_ok=True)
    for left in home.glob(".unfinished-*"):
        shutil.rmtree(left)
    waiting = [unit for unit in units if not (home / unit.name).is_dir()]
    if processes <= 1 or len(waiting) <= 1:
        for unit in waiting:
            finish(unit, home)
    else:
        (_engine.get() or Engine.usually()).compute(waiting, home, processes)
    return [home / unit.name for unit in units]


@contextmanager
def computed_on(engine: Engine) -> Iterator[None]:
    """Inside this block, units are computed on `engine`. It is of the machine, as joblib's backend is, and not of what calls."""
    before = _engine.set(engine)
    try:
        yield
    finally:
        _engine.reset(before)


_engine: ContextVar[Engine | None] = ContextVar("engine", default=None)


def finish(unit: Unit, home: Path) -> None:
    """Compute one unit, and give its folder its name. Where another has done so meanwhile, as an engine that believes a
    machine lost may let it, that one stays: both hold the same."""
    aside = Path(tempfile.mkdtemp(prefix=f".unfinished-{unit.name}-", dir=home))
    try:
        unit(aside)
        for file in aside.rglob("*"):
            if file.is_file():
                flush(file)
        try:
            os.replace(aside, home / unit.name)
        except OSError:
            if not (home / unit.name).is_dir():
                raise
            shutil.rmtree(aside)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
