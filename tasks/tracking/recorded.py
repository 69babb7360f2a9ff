"""Which executions MLflow has recorded: notes on disk, read without MLflow and without reading any journal."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tasks.environment import state_folder


def journals_folder(root: Path) -> Path:
    """Folder of the journals of executions (`tasks.tracking.journal`), and of the notes here."""
    return state_folder(root) / "executions"


def mark_recorded(root: Path, execution: str) -> None:
    """Note that MLflow has recorded all of `execution`. On a full disk nothing is noted, and it is sent again."""
    with suppress(OSError):
        journals_folder(root).mkdir(parents=True, exist_ok=True)
        (journals_folder(root) / f"{execution}.told").touch()


def is_recorded(root: Path, execution: str) -> bool:
    """Whether MLflow has recorded all of `execution`.

    Depends on the note of `mark_recorded`, not on a missing journal: on a full disk there may never have been one.
    """
    return (journals_folder(root) / f"{execution}.told").exists()


def has_pending(root: Path) -> bool:
    """Whether executions left journals that MLflow has not recorded yet."""
    return any(journals_folder(root).glob("*.jsonl"))
