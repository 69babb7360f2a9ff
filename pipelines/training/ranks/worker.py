"""Worker process of the local launcher: `python -m pipelines.training.ranks.worker [--cache FOLDER]`, which reads its
jobs from standard input.

Each line names a file that holds a job. Jobs run one after the other and share the start-up cost of torch. A finished
job has its result file. An error that a user can fix is written into the job's folder, for the launcher to report; any
error ends this process. When the launcher dies, for any reason, standard input closes and this process ends too, after
writing a checkpoint.
"""

from __future__ import annotations

import argparse
import os
import queue
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from pipelines.errors import CursusError
from pipelines.lineage.results import COMPILED
from pipelines.training.ranks import rank

IDLE_SECONDS = 0.5
"""Time in which a process without a job ends by itself."""
GRACE_SECONDS = 8
"""Time in which a process in the middle of a job can write a checkpoint."""


def main() -> int:
    """Run jobs until standard input closes; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, help="the cache of the jobs to come, for a worker without GPUs")
    cache = parser.parse_args().cache
    orders: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()
    rank.import_libraries()  # before the first job arrives, while the launcher still prepares it
    if cache is not None and orders.empty():
        _compile(cache / COMPILED)
    while (order := orders.get()) is not None:
        if status := rank.main(Path(order)):
            return status
    return 0


def _compile(folder: Path) -> None:
    """Let accelerators compile what they need, while the launcher still prepares the first job; where that fails, the
    job that needs it says why."""
    from pipelines.parts.accelerators import installed_accelerators

    for one in installed_accelerators():
        if one.applies("cpu"):
            with suppress(CursusError, OSError):
                one.accelerate((), folder)


def _listen(orders: queue.Queue[str | None]) -> None:
    """Put the lines of standard input into `orders`, and end the process after the pipe closes.

    Between jobs the process ends by itself; during a job it gets SIGTERM, so that it writes a checkpoint, and is killed
    if it does not end in time. Reads from the descriptor: a thread that waits inside `sys.stdin` makes the interpreter
    abort when it shuts down.
    """
    waiting = b""
    while received := os.read(0, 65536):
        *lines, waiting = (waiting + received).split(b"\n")
        for line in lines:
            orders.put(os.fsdecode(line))
    orders.put(None)
    time.sleep(IDLE_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(143)


if __name__ == "__main__":
    sys.exit(main())
