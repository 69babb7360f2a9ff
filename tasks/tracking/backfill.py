"""Backfill of MLflow from the store: steps that it lacks, because it is new or was deleted, are logged from their
records."""

from __future__ import annotations

import time
from pathlib import Path

from pipelines.lineage.locks import Lock
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from tasks.environment import state_folder
from tasks.tracking.journal import steps_under_way
from tasks.tracking.recorded_steps import recorded_fingerprints
from tasks.tracking.recorder import Recorder

PATIENCE = 30.0
"""Seconds that another execution is given to log a step that it has published."""


def ensure_run(recorder: Recorder, provenance: Provenance, folder: Path, experiment: str | None = None) -> str:
    """The id of the run in which a finished step was computed; logged from its record when MLflow has no such run.

    An execution publishes a step a moment before it logs it, so this waits for an execution that is about to.
    """
    deadline = time.monotonic() + PATIENCE
    while (run := recorder.finished_run(provenance.fingerprint)) is None:
        if provenance.fingerprint not in steps_under_way(recorder.root) or time.monotonic() > deadline:
            # look again: the run may have been logged, and its journal deleted, in between
            return recorder.finished_run(provenance.fingerprint) or recorder.record(provenance, folder, experiment)
        time.sleep(0.2)
    return run


class TrackingBackfill:
    """Logs the artifacts of `store` that MLflow lacks. Idempotent; raises what MLflow raises."""

    def __init__(self, recorder: Recorder, store: Store) -> None:
        self.recorder = recorder
        self.store = store

    def record_missing(self) -> int:
        """Log every artifact that MLflow has no finished run of, parents first, and return their number.

        Steps that an execution has begun are left to it. When nothing is missing, this costs one query and reads no
        record.
        """
        state = state_folder(self.recorder.root)
        lock = Lock.take(state / "projection.lock", wait=True)
        assert lock is not None
        try:
            # read the store first: whatever is published later was begun by an execution, which logs it itself
            present = self.store.fingerprints()
            recorded = steps_under_way(self.recorder.root) | recorded_fingerprints(self.recorder)
            missing = list(self.store.all(present - recorded))
            for provenance in missing:
                self.recorder.record(provenance, self.store.root / provenance.fingerprint)
        finally:
            lock.release()
        return len(missing)
