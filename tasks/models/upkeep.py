"""Garbage collection of the store: artifacts that a registered model needs are never removed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipelines.errors import StoreError
from pipelines.lineage.store import Store
from pipelines.lineage.upkeep import RemovableFolder, remove, unneeded
from tasks.decisions.journal import PromotionJournal
from tasks.tracking.journal import pending_models
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry

DAY = 24 * 60 * 60


def removable(root: Path, store: Store, days: float) -> list[RemovableFolder]:
    """Artifacts older than `days` from which no version of a registered model was made.

    Raises StoreError when MLflow does not answer: without it, the needed artifacts are unknown.
    """
    try:
        registered = Registry(Recorder(root)).fingerprints()
    except Exception as error:
        raise StoreError(
            f"MLflow of {root} does not answer, so the artifacts of its registered models are unknown; "
            "nothing is removed"
        ) from error
    return unneeded(store, registered | pending_models(root) | PromotionJournal(store).referenced(), days * DAY)


def collect(root: Path, store: Store, days: float, notify: Callable[[str], None]) -> list[RemovableFolder]:
    """Remove the artifacts that `removable` returns, and return them. Waits for runs that use the store, and passes a
    message to `notify` if it does."""
    with store.exclusive(notify):
        removed = removable(root, store, days)
        remove(store, removed)
    return removed
