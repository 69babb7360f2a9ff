"""GPUs of this machine: one job trains on one at a time, whichever run, checkout or server it belongs to.

    with devices_held(1, say) as names: …      # waits while others hold all of them

A device is held by a lock on a file, which the system lets go of when its holder ends, however it ends: there is no slot that a
killed run leaves taken, and no server that has to be asked. Prefect's work pool decides which run is next (prefect.yaml).
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.errors import CursusError
from pipelines.lineage import hardware
from pipelines.lineage.locks import Lock
from pipelines.recipe.job import Runtime

VARIABLE = "CURSUS_DEVICES"
"""How many devices this machine has, where that is not its number of GPUs: 1 lets two runs on processors take turns."""
ASK_EVERY = 0.5
"""Seconds between two looks at devices that are in use."""


def devices() -> tuple[str, ...]:
    """The devices that runs share, as CUDA names them; none on a machine without GPUs, where nothing is limited.

    Raises CursusError where CURSUS_DEVICES is no number.
    """
    told = os.environ.get(VARIABLE, "")
    if told and not told.isdecimal():
        raise CursusError(f"{VARIABLE} is the number of devices that runs share, not {told!r}")
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return tuple(name.strip() for name in visible.split(","))[: int(told) if told else None]
    return tuple(str(number) for number in range(int(told) if told else hardware.gpus()))


def asked_for(runtime: Runtime) -> int:
    """Devices that a job takes on this machine: none on processors, unless CURSUS_DEVICES says that runs take turns there."""
    return runtime.devices if runtime.accelerator == "gpu" or os.environ.get(VARIABLE) else 0


@contextmanager
def devices_held(count: int, say: Callable[[str], None]) -> Iterator[tuple[str, ...]]:
    """Hold `count` devices; their names, or none where nothing is limited. `say` hears once when others have to be waited for.

    All or none are taken, so that two that wait never hold what the other needs. Raises CursusError where there are not as
    many.
    """
    shared = devices()
    if not shared or not count:
        yield ()
        return
    if count > len(shared):
        raise CursusError(f"{count} devices are asked for, and this machine shares {len(shared)}: {', '.join(shared)}")
    folder = Path(tempfile.gettempdir()) / f"cursus-devices-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    told = False
    while len(held := _take(folder, shared, count)) < count:
        if not told:
            say(f"other runs train on the devices of this machine ({', '.join(shared)}); waiting for {count}")
            told = True
        time.sleep(ASK_EVERY)
    try:
        yield tuple(held)
    finally:
        for lock in held.values():
            lock.release()


def _take(folder: Path, shared: tuple[str, ...], count: int) -> dict[str, Lock]:
    turn = Lock.take(folder / "turn", wait=True)
    assert turn is not None
    held: dict[str, Lock] = {}
    for device in shared:
        if len(held) < count and (lock := Lock.take(folder / device.replace("/", "-"))) is not None:
            held[device] = lock
    if len(held) < count:
        for lock in held.values():
            lock.release()
        held = {}
    turn.release()
    return held
