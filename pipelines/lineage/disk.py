"""What a power cut must not undo, and what nobody must see half of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


def flush(path: Path) -> None:
    """Wait until the content of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def written_whole(path: Path, aside: Path | None = None, *, flushed: bool = False) -> Iterator[Path]:
    """A place to write a file that becomes `path` when the block ends well, or else vanishes, and `path` stays as it was.

    The place is hidden beside `path` unless `aside` names another on the same disk. It is the same every time, so what a
    killed writer left goes with the next; where several may write at once, each takes `one_of_many`. With `flushed` the
    content is on the disk before it has its name.
    """
    place = aside or path.with_name(f".{path.name}")
    try:
        yield place
        if flushed:
            flush(place)
        os.replace(place, path)
    except BaseException:
        place.unlink(missing_ok=True)
        raise


def one_of_many(path: Path) -> Path:
    """A place beside `path` that no other writer takes."""
    return path.with_name(f".{path.name}-{uuid4().hex}")


def write_whole(path: Path, text: str, aside: Path | None = None, *, flushed: bool = False) -> None:
    """Write `text`, in UTF-8, as `written_whole` does."""
    with written_whole(path, aside, flushed=flushed) as place:
        place.write_text(text, encoding="utf-8")
