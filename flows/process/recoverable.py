"""What ended a run that is neither a mistake in what was asked for nor a bug of ours: a full disk, a server that is gone."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import CursusError, StageError, StoreError
from tasks.environment import state_folder

FULL = 2**20
"""Free bytes below which a disk is full: databases and logs fail in their own words long before the last byte."""


def mendable(error: BaseException, root: Path) -> CursusError | None:
    """The sentence for `error`, where it is the machine's and not ours; else None."""
    if isinstance(error, CursusError | KeyboardInterrupt):
        return None
    return full_disk(error, root) or _server_gone(error)


def full_disk(error: BaseException, root: Path) -> CursusError | None:
    """The sentence for an error that a full disk explains, whatever it says itself: SQLite and Prefect have words of their own."""
    places = [Path(tempfile.gettempdir()), state_folder(root), root / "data" / "store", root / "data" / "prepared"]
    found = [place for place in places if place.exists() and shutil.disk_usage(place).free < FULL]
    named = [one.filename for one in _chain(error) if isinstance(one, OSError) and one.errno == errno.ENOSPC]
    if not found and not named:
        return None
    place = found[0] if found else named[0] or root
    return StoreError(f"{place}: no space left on the disk; free some, then run again: what is finished is kept")


def _server_gone(error: BaseException) -> CursusError | None:
    import httpx
    from prefect.exceptions import PrefectHTTPStatusError

    for one in _chain(error):
        if isinstance(one, httpx.TransportError | PrefectHTTPStatusError) or "ephemeral Prefect API server" in str(one):
            return StageError(
                f"Prefect's server does not answer ({type(one).__name__}); run the same command again: what is finished is kept"
            )
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and what it came of."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        if isinstance(seen, BaseExceptionGroup):
            for inner in seen.exceptions:
                yield from _chain(inner)
        seen = seen.__cause__ or seen.__context__
