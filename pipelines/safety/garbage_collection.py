"""Garbage collection in processes that import large libraries.

An import makes objects by the hundred thousand, and all of them stay. Python looks for garbage among them after every
700 new ones: a fifth to a third of the time in which torch, Lightning, Prefect or MLflow are imported.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = 50_000
"""New objects between two collections of a process that imports in the course of its work; Python's own is 700."""


def collect_rarely() -> None:
    """Collect after `RARELY` new objects, from now on: for short-lived processes without large tensors."""
    gc.set_threshold(RARELY)


@contextmanager
def collection_paused() -> Iterator[None]:
    """No collection within, for imports; later ones leave out what exists at the end of it."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
