"""The process a launcher starts: `python -m pipelines.training.ranks.worker`, told what to do on standard input.

Each line names a file that holds a job. Jobs run one after the other and share the start-up cost of torch. A finished
job has its result file. What a user can mend is written into the job's folder for the launcher to tell; whatever goes
wrong ends this process. When the launcher dies, however it dies, standard input closes and this process ends too,
leaving its checkpoints.
"""

from __future__ import annotations

import importlib
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path

from pipelines.training.ranks import rank

IDLE_SECONDS = 0.5
"""What a process without a job needs to end by itself."""
GRACE_SECONDS = 8
"""What a process in the middle of a job is given to leave a checkpoint."""
WARM = (
    "torch",
    "pytorch_lightning",
    "pipelines.training.loop.fit",
    "pipelines.training.loop.module",
    "transformers.models.auto",
)
"""Imported before the first job arrives, while the launcher still prepares it."""


def main() -> int:
    """Run jobs until standard input closes; the exit status."""
    orders: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()
    for name in WARM:
        importlib.import_module(name)
    while (order := orders.get()) is not None:
        if status := rank.main(Path(order)):
            return status
    return 0


def _listen(orders: queue.Queue[str | None]) -> None:
    """Pass lines on. When the pipe closes between jobs the process ends by itself; in the middle of one it is asked to,
    so that it leaves a checkpoint, and ended here if it does not.

    Read from the descriptor: a thread that waits inside `sys.stdin` makes the interpreter abort when it shuts down.
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
