"""Errors that are neither the user's mistake nor a bug: a full disk, an unreachable server."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pipelines.errors import CursusError, StageError, StoreError
from tasks.environment import state_folder

FULL = 2**20
"""Free bytes below which a disk counts as full: databases and logs fail with errors of their own before the last
byte."""


def recoverable(error: BaseException, root: Path) -> CursusError | None:
    """The error to show for `error` if the machine caused it; None for the user's mistakes and for bugs."""
    if isinstance(error, CursusError | KeyboardInterrupt):
        return None
    return full_disk(error, root) or server_gone(error)


def full_disk(error: BaseException, root: Path) -> CursusError | None:
    """The error to show if a full disk explains `error`, whatever its type: SQLite and Prefect raise errors of their
    own."""
    folders = [Path(tempfile.gettempdir()), state_folder(root), root / "data" / "store", root / "data" / "prepared"]
    full = [folder for folder in folders if folder.exists() and shutil.disk_usage(folder).free < FULL]
    named = [one.filename for one in _chain(error) if isinstance(one, OSError) and one.errno == errno.ENOSPC]
    if not full and not named:
        return None
    path = full[0] if full else named[0] or root
    return StoreError(f"{path}: no space left on the disk; free some, then run again: finished steps are kept")


def server_gone(error: BaseException) -> CursusError | None:
    """The error to show if a server of Prefect that does not answer explains `error`."""
    import httpx
    from prefect.exceptions import PrefectHTTPStatusError

    for one in _chain(error):
        if isinstance(one, httpx.TransportError | PrefectHTTPStatusError) or "ephemeral Prefect API server" in str(one):
            return StageError(
                f"Prefect's server does not answer ({type(one).__name__}); run the same command again: finished steps "
                "are kept"
            )
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, its causes and contexts, and the members of exception groups."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        if isinstance(seen, BaseExceptionGroup):
            for inner in seen.exceptions:
                yield from _chain(inner)
        seen = seen.__cause__ or seen.__context__
