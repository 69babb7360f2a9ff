"""The first stage of a `dvc repro` by hand: `python -m tasks.datasets.wait_for_runs`.

Waits until no run of this checkout prepares data or reads tables, and keeps new ones waiting until DVC has ended. DVC
itself waits for nobody: it ends with an error where another of its processes uses a path, and replaces tables that a
training process reads.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil

from pipelines.lineage.locks import Lock
from tasks.datasets.dvc_process import is_dvc
from tasks.datasets.lock_files import checkout_lock

WAITED = Path("data/pins/waited")
"""The output of the stage, which never changes: stages after it run only if something else has changed."""
WAITED_TEXT = "written by the stage wait_for_runs; never changes\n"
"""Its text: it is in git, so that `dvc repro --dry` works in a clone."""
WAITING = "runs of this checkout use its data; waiting for them to end"
POLL_SECONDS = 0.2


def main(root: Path) -> None:
    """Take the lock when no run holds it, and leave it to a process that ends with DVC."""
    dvc = next((process for process in psutil.Process().parents() if is_dvc(process)), None)
    path, waiting = checkout_lock(root), False
    while (lock := Lock.take(path)) is None:
        if not waiting:
            print(WAITING, flush=True)
            waiting = True
        if dvc is not None and not _runs(dvc):
            return
        time.sleep(POLL_SECONDS)
    (root / WAITED).parent.mkdir(parents=True, exist_ok=True)
    if not (root / WAITED).exists():
        (root / WAITED).write_text(WAITED_TEXT, encoding="utf-8")
    if dvc is None or os.fork():
        os._exit(0)  # the other process holds the lock from here on
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # whoever reads the output of DVC must not wait for this process
        os.dup2(nowhere, stream)
    while _runs(dvc):
        time.sleep(POLL_SECONDS)
    lock.release()


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


if __name__ == "__main__":
    try:
        main(Path.cwd())
    except KeyboardInterrupt:
        sys.exit(130)
