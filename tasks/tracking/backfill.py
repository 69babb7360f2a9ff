"""MLflow rebuilt from the store: what it missed, because it was deleted or is new, is told from the records."""

from __future__ import annotations

import time
from pathlib import Path

from pipelines.lineage.locks import Lock
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from tasks.environment import state_folder
from tasks.tracking.journal import steps_under_way
from tasks.tracking.recorded_steps import told_steps
from tasks.tracking.recorder import Recorder

PATIENCE = 30.0
"""Seconds that another execution is given to tell of a step that it has published."""


def run_of(recorder: Recorder, provenance: Provenance, folder: Path, experiment: str | None = None) -> str:
    """The run in which a finished step was computed; told from its record where MLflow does not know it.

    An execution publishes a step a moment before it tells of it: while it is about to, it is waited for.
    """
    deadline = time.monotonic() + PATIENCE
    while (run := recorder.recorded(provenance.fingerprint)) is None:
        if provenance.fingerprint not in steps_under_way(recorder.root) or time.monotonic() > deadline:
            # asked once more: it may have been told, and its journal forgotten, in between
            return recorder.recorded(provenance.fingerprint) or recorder.record(provenance, folder, experiment)
        time.sleep(0.2)
    return run


class Projection:
    """Tells MLflow of what is in `store`. Telling a thing twice changes nothing. Raises what MLflow raises."""

    def __init__(self, recorder: Recorder, store: Store) -> None:
        self.recorder = recorder
        self.store = store

    def replay(self) -> int:
        """Record every artifact that MLflow does not tell of, parents first; how many those were.

        What an execution has begun is left to it. Where nothing is missing, one question to MLflow and no record read.
        """
        state = state_folder(self.recorder.root)
        lock = Lock.take(state / "projection.lock", wait=True)
        assert lock is not None
        try:
            # the store first: what is published from here on was begun by an execution that tells of it
            present = self.store.fingerprints()
            told = steps_under_way(self.recorder.root) | told_steps(self.recorder)
            missing = list(self.store.all(present - told))
            for provenance in missing:
                self.recorder.record(provenance, self.store.root / provenance.fingerprint)
        finally:
            lock.release()
        return len(missing)
