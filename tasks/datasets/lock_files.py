"""The files of the locks on data (`tasks.datasets.lock`)."""

from __future__ import annotations

from pathlib import Path

from tasks.environment import state_folder


def checkout_lock(root: Path) -> Path:
    """The file of the lock on all data of a checkout."""
    return state_folder(root) / "locks" / "data"


def dataset_lock(dataset: str, root: Path) -> Path:
    """The file of the lock on the tables of a dataset."""
    return state_folder(root) / "locks" / f"data-{dataset}"
