"""The store as the registry sees it: what a registered model needs is never removed."""

from __future__ import annotations

from pathlib import Path

from pipelines.errors import StoreError
from pipelines.lineage.store import Store
from pipelines.lineage.upkeep import Kept, remove, unneeded
from tasks.decisions.journal import PromotionJournal
from tasks.tracking.journal import offered
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry

DAY = 24 * 60 * 60


def removable(root: Path, store: Store, days: float) -> list[Kept]:
    """What no version of a registered model was made from, and nothing younger than `days` either.

    StoreError when MLflow does not answer: without it nobody knows what is needed.
    """
    try:
        registered = Registry(Recorder(root)).fingerprints()
    except Exception as error:
        raise StoreError(
            f"MLflow of {root} does not answer, so what its registered models need is not known; nothing is removed"
        ) from error
    return unneeded(store, registered | offered(root) | PromotionJournal(store).needed(), days * DAY)


def collect(root: Path, store: Store, days: float) -> list[Kept]:
    """Remove what `removable` finds, and say what it was. StoreError when a run is using the store."""
    with store.exclusive():
        gone = removable(root, store, days)
        remove(store, gone)
    return gone
