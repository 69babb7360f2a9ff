"""A disk that runs full at a random moment, and has space again afterwards: a small tmpfs mounted on one of the run's
folders."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from random import Random

from benchmarks.faults.fault import Fault, Moment, Strike
from benchmarks.faults.judge import Snapshot
from benchmarks.faults.regime import Checkout

FOLDERS = {"store": "data/store", "prepared data": "data/prepared", "state": ".cursus", "temporary folder": "tmp"}
ROOMY = "2g"
PAGE = 4096
"""Smallest size of a tmpfs, in bytes."""


class DiskFull(Fault):
    name = "disk_full"
    description = "the disk of the store, the state, the prepared data or the temporary folder has no space left"
    cases = 20

    def unavailable(self) -> str | None:
        if os.geteuid() != 0 or shutil.which("mount") is None:
            return "only root may mount a tmpfs"
        return None

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        # most data is written to the store
        name = random.choice([*FOLDERS, "store"])
        folder = checkout.folder / FOLDERS[name]
        mount(folder)
        checkout.settings["TMPDIR"] = str(checkout.folder / "tmp")
        (checkout.folder / "tmp").mkdir(exist_ok=True)
        moment = Moment.draw(random)
        attempt = checkout.start()
        struck = attempt.watch(lambda: moment.reached(attempt, checkout))
        if struck:
            fill(folder, random.choice([0, 0, PAGE, 16 * PAGE]))
        ending = attempt.ended()
        finished = Snapshot.of(checkout.store)
        free(folder)
        if not struck and ending.success:
            return None
        return Strike(f"{name} {moment.described(finished)}", ending, finished)

    def after(self, checkout: Checkout) -> None:
        for folder in FOLDERS.values():
            while os.path.ismount(checkout.folder / folder):
                subprocess.run(["umount", "--lazy", str(checkout.folder / folder)], check=True)


def mount(folder: Path) -> None:
    """Mount a tmpfs on `folder`, with the folder's content."""
    folder.mkdir(parents=True, exist_ok=True)
    original = folder.with_name(f"{folder.name}-before")
    shutil.move(folder, original)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOMY}", "cursus-faults", str(folder)], check=True)
    subprocess.run(["cp", "-a", f"{original}/.", str(folder)], check=True)
    shutil.rmtree(original)


def fill(folder: Path, left: int) -> None:
    """Shrink the disk until `left` bytes are free. A file that fills it could be deleted by the run."""
    while True:
        stat = os.statvfs(folder)
        size = max(PAGE, (stat.f_blocks - stat.f_bfree) * stat.f_frsize + left)  # a size of 0 means unlimited
        # the remount fails if more was written meanwhile: try again
        if subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], capture_output=True).returncode == 0:
            return


def free(folder: Path) -> None:
    """Restore the disk's size."""
    subprocess.run(["mount", "-o", f"remount,size={ROOMY}", str(folder)], check=True)
