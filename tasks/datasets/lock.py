"""Tables do not change while a run trains on them: runs share a dataset, and preparing it anew needs it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.lineage.locks import Lock
from tasks.datasets.prepared import Prepared, open_prepared, prepare, up_to_date
from tasks.environment import state_folder


@contextmanager
def data_in_use(
    dataset: str, root: Path, make: Callable[[], Prepared], say: Callable[[str], None]
) -> Iterator[Prepared]:
    """The dataset that `make` brings up to date, unchanged by any other run until the block ends.

    Where other runs are using it and it is out of date, their end is waited for, and `say` tells so.
    """
    while True:
        lock = _alone_or_current(dataset, root, say)
        try:
            prepared = make()
            lock.share()
            # whoever waited for the lock alone may have come first
            if open_prepared(dataset, root).digests == prepared.digests:
                yield prepared
                return
        finally:
            lock.release()


@contextmanager
def data_as_it_is(dataset: str, root: Path) -> Iterator[None]:
    """The dataset's tables, whatever they hold, unchanged by any other run until the block ends."""
    lock = Lock.take(_lock_of(dataset, root), shared=True, wait=True)
    assert lock is not None
    try:
        yield
    finally:
        lock.release()


def prepare_in_turn(dataset: str, root: Path, on_step: Callable[[str], None], say: Callable[[str], None]) -> Prepared:
    """`tasks.datasets.prepared.prepare`, without changing what other runs are using."""
    with data_in_use(dataset, root, lambda: prepare(dataset, root, on_step), say) as prepared:
        return prepared


def _alone_or_current(dataset: str, root: Path, say: Callable[[str], None]) -> Lock:
    """The lock on a dataset: alone, or shared where others use it and there is nothing to change."""
    path = _lock_of(dataset, root)
    lock = Lock.take(path)
    if lock is not None:
        return lock
    shared = Lock.take(path, shared=True, wait=True)  # where it is being prepared, until it is
    assert shared is not None
    if up_to_date(dataset, root):
        return shared
    shared.release()
    say(f"{dataset}: has changed, and another run is training on it as it was; waiting for that to end")
    alone = Lock.take(path, wait=True)
    assert alone is not None
    return alone


def _lock_of(dataset: str, root: Path) -> Path:
    return state_folder(root) / "locks" / f"data-{dataset}"
