"""Durable and atomic writes: flushed to the disk, and never visible half-written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


def flush(path: Path) -> None:
    """Wait until the content of a file, or the entries of a folder, are on the disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic_write(path: Path, temporary: Path | None = None, *, flushed: bool = False) -> Iterator[Path]:
    """Yield a temporary path that is renamed to `path` when the block ends without an error, else deleted.

    The temporary file is a hidden one next to `path`, unless `temporary` names another on the same disk. Its name is
    always the same, so that the next write replaces what a killed process left; where several processes may write at
    once, each needs a `unique_temporary_path`. With `flushed` the content is on the disk before the file is renamed.
    """
    temporary = temporary or path.with_name(f".{path.name}")
    try:
        yield temporary
        if flushed:
            flush(temporary)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def unique_temporary_path(path: Path) -> Path:
    """A hidden path next to `path` that no other writer uses."""
    return path.with_name(f".{path.name}-{uuid4().hex}")


def write_text_atomically(path: Path, text: str, temporary: Path | None = None, *, flushed: bool = False) -> None:
    """Write `text`, in UTF-8, through `atomic_write`."""
    with atomic_write(path, temporary, flushed=flushed) as file:
        file.write_text(text, encoding="utf-8")
