"""dvc.lock, which DVC writes in place after each step: a kill meanwhile leaves half of it.

The last whole one is kept in the state folder, and put back; DVC then finds the steps that had ended since in its cache
of runs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.lineage.disk import unique_temporary_path, write_text_atomically
from pipelines.lineage.locks import Lock
from tasks.environment import private_state_folder, state_folder

log = logging.getLogger("cursus.data")
REPOSITORY, PATHS = "lock", "rwlock.lock"
"""DVC's locks: a process of it holds the first, except while a step runs, and the second while it changes the table of
the paths that steps use."""
CONFLICT = "<<<<<<<"
"""What git writes into a file that two branches have changed."""


def locked_stages(root: Path) -> dict[str, Any]:
    """The stages of dvc.lock; none before there is one. Raises DataError for a file that is not whole."""
    text = _whole_text(root)
    return {} if text is None else _stages_in(text) or {}


def keep_copy(root: Path) -> None:
    """Keep a copy of dvc.lock, before DVC changes it. Raises as `locked_stages`."""
    text, copy = _whole_text(root), _copy(root)
    if text is not None and not (copy.exists() and copy.read_text(encoding="utf-8") == text):
        private_state_folder(root)  # which a clone does not have, while it has a dvc.lock
        copy.parent.mkdir(exist_ok=True)
        write_text_atomically(copy, text, unique_temporary_path(copy))  # two datasets may be prepared at once


def restore_torn(root: Path) -> None:
    """Return to the copy where dvc.lock is not whole, unless that is git's doing."""
    copy = _copy(root)
    if not copy.exists() or not _is_torn(_read(root)):
        return
    with dvc_excluded(root, REPOSITORY):
        if _is_torn(_read(root)):
            write_text_atomically(root / "dvc.lock", copy.read_text(encoding="utf-8"))
            log.warning("dvc.lock was not whole, since DVC was killed while it wrote it: the last whole one is back")


@contextmanager
def dvc_excluded(root: Path, name: str) -> Iterator[None]:
    """Hold the lock of DVC's with this name, and wait until no process of DVC does."""
    guard = Lock.take(root / ".dvc" / "tmp" / name, wait=True)
    assert guard is not None
    try:
        yield
    finally:
        guard.release()


def _whole_text(root: Path) -> str | None:
    """The text of dvc.lock, read again while nobody writes it where it is not whole; None before there is one. Raises
    as `locked_stages`."""
    text = _read(root)
    if text is None or _stages_in(text) is not None:
        return text
    with dvc_excluded(root, REPOSITORY):
        text = _read(root)
    if text is None or _stages_in(text) is not None:
        return text
    reason = "has conflicts of git" if CONFLICT in text else "is not whole"
    raise DataError(
        f"dvc.lock {reason}: return to a whole one ('git checkout dvc.lock'), or delete it, after which the data is "
        "prepared anew"
    )


def _is_torn(text: str | None) -> bool:
    return text is not None and CONFLICT not in text and _stages_in(text) is None


def _read(root: Path) -> str | None:
    """The text of dvc.lock, which a process may be writing; None before there is one."""
    try:
        return (root / "dvc.lock").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None


def _copy(root: Path) -> Path:
    return state_folder(root) / "dvc" / "dvc.lock"


@lru_cache(maxsize=2)
def _stages_in(text: str) -> dict[str, Any] | None:
    """The stages of the text of a dvc.lock; None where it is not whole."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        stages: dict[str, Any] = YAML(typ="safe").load(text)["stages"]
    except (YAMLError, TypeError, KeyError):
        return None
    return stages
