"""Locks on data: runs share a dataset, and preparing it is exclusive, so tables do not change during a run.

A `dvc repro` by hand takes the lock of the whole checkout exclusively (`tasks.datasets.wait_for_runs`); everything here
shares it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.lineage.locks import Lock
from pipelines.messages.translation import message, translatable
from tasks.datasets.lock_files import checkout_lock, dataset_lock
from tasks.datasets.prepared import Prepared, open_prepared, prepare, up_to_date

PREPARED = translatable("{dataset}: another process is preparing this dataset; waiting for it to end")
REPRODUCED = translatable("`dvc repro` uses the data of this checkout; waiting for it to end")


@contextmanager
def data_in_use(
    dataset: str, root: Path, make: Callable[[], Prepared], notify: Callable[[str], None]
) -> Iterator[Prepared]:
    """Bring the dataset up to date with `make`, and keep other runs from changing it until the block ends.

    If it is out of date while other runs use it, waits for them to end and passes a message to `notify`.
    """
    with _checkout_shared(root, notify):
        while True:
            lock = _alone_or_current(dataset, root, notify)
            try:
                prepared = make()
                lock.share()
                # a process that waited for the exclusive lock may have changed the dataset in between
                if open_prepared(dataset, root).digests == prepared.digests:
                    yield prepared
                    return
            finally:
                lock.release()


@contextmanager
def shared_data_lock(dataset: str, root: Path, notify: Callable[[str], None]) -> Iterator[None]:
    """Keep other runs from changing the dataset's tables, in their present state, until the block ends."""
    with (
        _checkout_shared(root, notify),
        _shared(dataset_lock(dataset, root), message(PREPARED, dataset=dataset), notify),
    ):
        yield


def prepare_in_turn(
    dataset: str,
    root: Path,
    on_step: Callable[[str], None],
    notify: Callable[[str], None],
    *,
    accept: bool = False,
) -> Prepared:
    """`tasks.datasets.prepared.prepare`, after other runs that use the dataset have ended."""
    with data_in_use(dataset, root, lambda: prepare(dataset, root, on_step, accept=accept), notify) as prepared:
        return prepared


def _alone_or_current(dataset: str, root: Path, notify: Callable[[str], None]) -> Lock:
    """Lock a dataset: exclusively, or shared if other runs use it and it is up to date."""
    path = dataset_lock(dataset, root)
    lock = Lock.take(path)
    if lock is not None:
        return lock
    shared = _take_shared(path, message(PREPARED, dataset=dataset), notify)
    if up_to_date(dataset, root):
        return shared
    shared.release()
    line = "{dataset}: has changed, and another run is training on its previous state; waiting for that run to end"
    notify(message(line, dataset=dataset))
    alone = Lock.take(path, wait=True)
    assert alone is not None
    return alone


@contextmanager
def _checkout_shared(root: Path, notify: Callable[[str], None]) -> Iterator[None]:
    with _shared(checkout_lock(root), message(REPRODUCED), notify):
        yield


@contextmanager
def _shared(path: Path, reason: str, notify: Callable[[str], None]) -> Iterator[None]:
    lock = _take_shared(path, reason, notify)
    try:
        yield
    finally:
        lock.release()


def _take_shared(path: Path, reason: str, notify: Callable[[str], None]) -> Lock:
    lock = Lock.take(path, shared=True)
    if lock is None:
        notify(reason)
        lock = Lock.take(path, shared=True, wait=True)
    assert lock is not None
    return lock
