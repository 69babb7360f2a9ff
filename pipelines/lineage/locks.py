"""Locks between processes on one machine, which the system releases when the process ends for any reason."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TextIO


class Lock:
    """A file lock that this process holds, exclusively or shared with others."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file = path, file

    @classmethod
    def take(cls, path: Path, *, shared: bool = False, wait: bool = False) -> Lock | None:
        """Lock the file `path`, which is created if needed; None when another process holds it and this one does not
        `wait`.

        Raises OSError where `path` cannot be written.
        """
        how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
        while True:
            # here, because its last holder may have deleted the folder as well
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+")
            try:
                fcntl.flock(file, how)
            except BlockingIOError:
                file.close()
                return None
            # its last holder may have deleted the file after it was opened here and before it was locked
            if _is_file(path, file):
                return cls(path, file)
            file.close()

    def share(self) -> None:
        """Turn an exclusive lock into a shared one; a waiting process may lock it exclusively in between."""
        fcntl.flock(self._file, fcntl.LOCK_SH)

    def write_owner(self, owner: str) -> None:
        """Write `owner` into the file, for processes that find it locked."""
        self._file.truncate(0)
        self._file.write(owner)
        self._file.flush()

    def release(self, *, delete: bool = False) -> None:
        """Release the lock; `delete` also deletes the file, for locks that are rarely taken twice."""
        if delete:
            self._path.unlink(missing_ok=True)
        self._file.close()


def _is_file(path: Path, file: TextIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
