"""Locks between real processes: alone, shared, waited for, and let go by a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.lineage.locks import Lock

HOLD = """
import sys
from pathlib import Path
from pipelines.lineage.locks import Lock
lock = Lock.take(Path(sys.argv[1]), shared=sys.argv[2] == "shared")
print("held" if lock else "refused", flush=True)
sys.stdin.read()
"""


@contextmanager
def another(path: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until the block ends."""
    command = [sys.executable, "-c", HOLD, str(path), how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_alone_means_alone_and_sharing_means_together(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "lock"
    with another(path, "shared"):
        assert Lock.take(path) is None
        beside = Lock.take(path, shared=True)
        assert beside is not None
        beside.release()
    alone = Lock.take(path)
    assert alone is not None and Lock.take(path, shared=True) is None
    alone.share()
    with another(path, "shared"):
        pass
    alone.release()


def test_a_killed_holder_lets_go_and_who_waits_comes_next(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    taken: list[Lock | None] = []
    with another(path, "alone") as holder:
        waiting = threading.Thread(target=lambda: taken.append(Lock.take(path, wait=True)))
        waiting.start()
        waiting.join(0.2)
        assert taken == []
        holder.send_signal(signal.SIGKILL)
        waiting.join(20)
    assert taken[0] is not None and Lock.take(path) is None
    taken[0].release()


def test_a_file_that_its_holder_took_away_is_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = Lock.take(path)
    assert first is not None
    taken: list[Lock | None] = []
    waiting = threading.Thread(target=lambda: taken.append(Lock.take(path, wait=True)))
    waiting.start()
    waiting.join(0.2)
    first.release(delete=True)
    waiting.join(20)
    assert taken[0] is not None and path.exists() and Lock.take(path) is None, "it holds the file that others will open"
    taken[0].release()
