"""Exclusive use of this machine's GPUs: one job per GPU at a time, across runs, checkouts and servers.

    with devices_held(1, notify) as names: …      # waits while other runs hold all of them

A device is held by a file lock, which the operating system releases when its holder ends for any reason: a killed run
leaves no device occupied, and no server is needed. Prefect's work pool decides which run is next (prefect.yaml).
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
from pipelines.messages.translation import message
from pipelines.recipe.job import Runtime

VARIABLE = "CURSUS_DEVICES"
"""Number of devices of this machine, if it differs from its number of GPUs: with 1, runs on processors take turns."""
POLL_SECONDS = 0.5
"""Interval at which occupied devices are checked."""


def devices() -> tuple[str, ...]:
    """The devices that runs share, by their CUDA names; empty on a machine without GPUs, where jobs are not limited.

    Raises CursusError when CURSUS_DEVICES is not a number.
    """
    count = os.environ.get(VARIABLE, "")
    if count and not count.isdecimal():
        raise CursusError(f"{VARIABLE} is the number of devices that runs share, not {count!r}")
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return tuple(name.strip() for name in visible.split(","))[: int(count) if count else None]
    return tuple(str(number) for number in range(int(count) if count else hardware.gpus()))


def devices_required(runtime: Runtime) -> int:
    """Devices that a job occupies on this machine: none on processors, unless CURSUS_DEVICES makes runs take turns
    there."""
    return runtime.devices if runtime.accelerator == "gpu" or os.environ.get(VARIABLE) else 0


@contextmanager
def devices_held(count: int, notify: Callable[[str], None]) -> Iterator[tuple[str, ...]]:
    """Hold `count` devices and yield their names; an empty tuple where devices are not limited.

    `notify` receives one message if the job has to wait for other runs. All devices are taken at once or none, so that
    two waiting jobs cannot deadlock. Raises CursusError when the machine has fewer than `count` devices.
    """
    shared = devices()
    if not shared or not count:
        yield ()
        return
    if count > len(shared):
        raise CursusError(f"{count} devices are requested, but this machine has {len(shared)}: {', '.join(shared)}")
    folder = Path(tempfile.gettempdir()) / f"cursus-devices-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    notified = False
    while len(held := _take(folder, shared, count)) < count:
        if not notified:
            line = "other runs train on the devices of this machine ({devices}); waiting for {count}"
            notify(message(line, devices=", ".join(shared), count=count))
            notified = True
        time.sleep(POLL_SECONDS)
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
