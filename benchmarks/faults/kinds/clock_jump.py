"""The wall clock jumps during a run, forwards or backwards, by seconds to years; the monotonic clock does not.

A preloaded library (clock.c) intercepts the clock calls of every process of the run, and adds an offset from a
memory-mapped file that changes at a random moment. Only the wall clock jumps, as after NTP, a manual change or the
restoration of a virtual machine. File times remain the kernel's.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from random import Random

from benchmarks.faults.fault import Fault, Moment, Strike
from benchmarks.faults.judge import Snapshot
from benchmarks.faults.regime import Checkout

SOURCE = Path(__file__).with_name("clock.c")
JUMPS = {"5 s": 5, "70 s": 70, "3 h": 3 * 3600, "a day": 86400, "400 days": 400 * 86400}


class ClockJump(Fault):
    name = "clock_jump"
    description = "the wall clock jumps by 5 seconds to 400 days, forwards or backwards"
    cases = 10

    def unavailable(self) -> str | None:
        return None if shutil.which("cc") is not None else "no C compiler is installed (cc)"

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        moment, sign, jump = Moment.draw(random), random.choice((-1, 1)), random.choice(list(JUMPS))
        clock = Clock(checkout.folder / "tmp")
        attempt = checkout.start(settings=clock.settings)
        struck = attempt.watch(lambda: moment.reached(attempt, checkout))
        clock.jump(sign * JUMPS[jump])
        finished = Snapshot.of(checkout.store)
        ending = attempt.ended()
        if not struck and ending.success:
            return None
        way = "forwards" if sign > 0 else "backwards"
        return Strike(f"{jump} {way} {moment.described(finished)}", ending, finished)


class Clock:
    """The wall clock of processes with `settings` in their environment."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._file, library = folder / "clock", folder / "clock.so"
        self.jump(0)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
        self.settings = {"LD_PRELOAD": str(library), "CURSUS_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Set the clock's offset."""
        mode = "r+b" if self._file.exists() else "wb"  # in place: it is mapped
        with self._file.open(mode) as file:
            file.write(struct.pack("=q", seconds))
