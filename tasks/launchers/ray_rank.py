"""The function that a Ray worker runs: the rank entry point of all launchers, in the process group that Ray has
created."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from pipelines.training.loop import stopping
from pipelines.training.ranks import rank

STOP = "stop"
"""Name of a file next to the serialised job: when it exists, the ranks write a checkpoint and end. Signals do not reach
Ray workers."""
POLL_SECONDS = 0.2


def run_rank(config: dict[str, str]) -> None:
    """Run the rank that this worker's environment names, of the job in the file `order`, in the checkout at `root`.

    Raises RuntimeError after a user's mistake, which is recorded in the job's folder: Ray then ends the other ranks.
    """
    order = Path(config["order"])
    stop = order.with_name(STOP)
    os.chdir(config["root"])
    os.environ["GROUP_RANK"] = os.environ["NODE_RANK"]  # torchrun's name for it
    threading.Thread(target=_listen, args=(stop,), daemon=True).start()
    try:
        mistaken = not stop.exists() and rank.main(order)
    except SystemExit:
        if not stop.exists():
            raise
        return  # the rank has stopped as requested
    if mistaken:
        raise RuntimeError("the error is recorded in the job's folder")


def _listen(stop: Path) -> None:
    while not stop.exists():
        time.sleep(POLL_SECONDS)
    stopping.request_stop()
