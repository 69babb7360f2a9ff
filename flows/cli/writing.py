"""What a command writes where the user says: a path that cannot be written is one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.errors import CursusError

REFUSED = {
    errno.EACCES, errno.EBUSY, errno.EEXIST, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR,
    errno.ENOTEMPTY, errno.EPERM, errno.EROFS, errno.EXDEV,
}  # fmt: skip
"""Errors of a path and its permissions; a full disk has a sentence of its own, and any other error is a bug."""


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Context in which `target` is made. Raises CursusError, with the path and the reason, where the system refuses
    it."""
    try:
        yield
    except OSError as error:
        if error.errno not in REFUSED or error.filename is None:
            raise
        raise CursusError(
            f"{error.filename}: {error.strerror}; {target} was not written: check the path and its permissions"
        ) from None
