"""What a worker of Ray runs: the same rank entry point as everywhere, in the group that Ray has made."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from pipelines.training.loop import stopping
from pipelines.training.ranks import rank

STOP = "stop"
"""File beside a job's order: its ranks are to leave a checkpoint and end. Where workers run, no signal reaches a rank."""
LOOK_SECONDS = 0.2


def take_part(asked: dict[str, str]) -> None:
    """Be the rank that this worker's environment says, of the job in the file `order`, in the checkout at `root`.

    Raises RuntimeError after a user's mistake, which is told in the job's folder: Ray then ends the other ranks.
    """
    order = Path(asked["order"])
    stop = order.with_name(STOP)
    os.chdir(asked["root"])
    os.environ["GROUP_RANK"] = os.environ["NODE_RANK"]  # as torchrun calls it
    threading.Thread(target=_listen, args=(stop,), daemon=True).start()
    try:
        mistaken = not stop.exists() and rank.main(order)
    except SystemExit:
        if not stop.exists():
            raise
        return  # it has stopped as it was asked to
    if mistaken:
        raise RuntimeError("the job's folder says what its mistake is")


def _listen(stop: Path) -> None:
    while not stop.exists():
        time.sleep(LOOK_SECONDS)
    stopping.ask()
