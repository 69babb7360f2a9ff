"""The wall clock jumps while a run goes on, forwards or backwards, by seconds to years; the monotonic clock does not.

libfaketime stands between every process of the run and the system's clock, and reads the jump from a file that changes at a
random moment. Only the clock that people set is moved (`DONT_FAKE_MONOTONIC`): that is what NTP, a person or a restored
virtual machine does.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from benchmarks.faults.fault import Fault, Strike
from benchmarks.faults.judge import Snapshot
from benchmarks.faults.regime import Checkout

JUMPS = {"5 s": 5, "70 s": 70, "3 h": 3 * 3600, "a day": 86400, "400 days": 400 * 86400}


def library() -> Path | None:
    """libfaketime, where Debian's package has put it."""
    return next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)


class ClockJump(Fault):
    name = "clock_jump"
    says = "the wall clock jumps by 5 seconds to 400 days, forwards or backwards (libfaketime)"
    cases = 10

    def unavailable(self) -> str | None:
        return None if library() is not None else "libfaketime is not installed (apt-get install libfaketime)"

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        share, sign, jump = random.random(), random.choice("+-"), random.choice(list(JUMPS))
        file = checkout.folder.with_name(f"{checkout.folder.name}-clock.txt")
        file.write_text("+0")
        settings = {
            "LD_PRELOAD": str(library()),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_CACHE_DURATION": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DONT_RESET": "1",
            "NO_FAKE_STAT": "1",
        }
        attempt = checkout.start(settings=settings)
        struck = attempt.watch(lambda: attempt.cpu() >= share * checkout.cpu)
        file.write_text(f"{sign}{JUMPS[jump]}")
        finished = Snapshot.of(checkout.store)
        ending = attempt.ended()
        if not struck and ending.success:
            return None
        return Strike(f"by {sign}{jump} after {share:.0%} of an undisturbed run's work: {finished}", ending, finished)
