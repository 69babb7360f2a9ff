"""States of files, by which a change since an earlier moment is noticed without reading them, as git's index does.

The state of a file is what the system records of it: device, inode, mode, size, and the times of the last change of its
content and of itself. Any write changes the latter, which no program can set. The state of a folder is the names in it.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

FileState: TypeAlias = tuple[int | str, ...]
"""What identifies the content of a file or the names in a folder; empty where there is neither."""
COMPILED = "__pycache__"
"""Folder that Python makes; sources are compared, not what is compiled from them."""
TICK = 50_000_000
"""Nanoseconds within which two writes may get equal times: five ticks of the slowest clock of a kernel."""
COARSE_TICK = 2_000_000_000
"""The same on a file system that records whole seconds, or every second one."""


def state_of(path: str) -> FileState:
    """The state of a file or folder."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            return (status.st_dev, status.st_ino, status.st_mode, *sorted(set(os.listdir(path)) - {COMPILED}))
    except (FileNotFoundError, NotADirectoryError):
        return ()
    times = (status.st_mtime_ns, status.st_ctime_ns)
    return (status.st_dev, status.st_ino, status.st_mode, status.st_size, *times)


def states_of(paths: Iterable[str]) -> dict[str, FileState]:
    """Path → state."""
    return {path: state_of(path) for path in paths}


def digest_of(states: Mapping[str, FileState]) -> str:
    """sha256 of paths and states, 64 hex digits."""
    digest = sha256()
    for path, state in states.items():
        digest.update(f"{path}\0{state}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def tree(folder: str, without: frozenset[str] = frozenset(), above: tuple[tuple[int, int], ...] = ()) -> Iterator[str]:
    """Yield `folder` and every file and folder below it, but for entries called `COMPILED` or as one of `without`.

    Links to folders are followed. `above` are device and inode of the folders on the way, where a circle of links ends.
    """
    yield folder
    try:
        status = os.stat(folder)
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    if (own := (status.st_dev, status.st_ino)) in above:
        return
    for entry in entries:
        if entry.name == COMPILED or entry.name in without:
            continue
        if entry.is_dir():
            yield from tree(entry.path, without, (*above, own))
        else:
            yield entry.path


def latest_trusted_time(folder: Path) -> int:
    """The present, in nanoseconds by the clock of the file system of `folder`, less the precision of its times.

    What was changed before has another state after any write from now on; a file that is written twice within that
    precision may have the same state twice.
    """
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".time-") as file:
        present = min(os.fstat(file.fileno()).st_mtime_ns, time.time_ns())
    return present - (COARSE_TICK if present % 1_000_000_000 == 0 else TICK)


def changed_before(path: str, time_ns: int) -> bool:
    """Whether a file or folder was last changed before `time_ns`, or does not exist."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    return max(status.st_mtime_ns, status.st_ctime_ns) < time_ns
