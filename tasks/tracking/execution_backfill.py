"""Backfill of MLflow from the records of executions in `reports/`: runs of executions that it lacks, because it is new
or was deleted. Their steps have been logged before, from the store (`tasks.tracking.backfill`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from pipelines.lineage.locks import Lock
from pipelines.reports.score_tables import EXECUTION as RECORD
from pipelines.reports.score_tables import is_smoke
from tasks.environment import state_folder
from tasks.records.headlines import Headline
from tasks.tracking.journal import ExecutionBegan, ExecutionEnded, ReportWritten, journalled_executions
from tasks.tracking.recorded_steps import recorded_executions
from tasks.tracking.recorder import Recorder
from tasks.tracking.writer import MLflowWriter

COMPARED = ("parameters", "headline")
"""Keys that records have since executions are compared."""


def record_missing_executions(recorder: Recorder) -> int:
    """Log every execution with a report that MLflow has no run of, and return their number. Idempotent.

    Raises what MLflow raises. Executions with a journal are left to it. When nothing is missing, this costs one query
    and reads no record.
    """
    paths = {path.parent.name: path for path in sorted((recorder.root / "reports").glob(f"*/{RECORD}"))}
    if not paths:
        return 0
    lock = Lock.take(state_folder(recorder.root) / "projection.lock", wait=True)
    assert lock is not None
    missing = 0
    try:
        known = recorded_executions(recorder) | journalled_executions(recorder.root)
        for name in sorted(paths.keys() - known):
            record = json.loads(paths[name].read_text(encoding="utf-8"))
            if all(key in record for key in COMPARED):
                _record(recorder, record, paths[name].with_name("report.html"))
                missing += 1
    finally:
        lock.release()
    return missing


def _record(recorder: Recorder, record: Mapping[str, Any], page: Path) -> None:
    began = round(datetime.fromisoformat(record["started"]).timestamp() * 1000)
    ended = began + round(float(record["seconds"]) * 1000)
    headline = Headline.read(record["headline"])
    steps = [{"step": step["stage"], "fingerprint": step["fingerprint"]} for step in record["steps"]]
    writer = MLflowWriter(recorder)
    writer.write_journal(
        [
            ExecutionBegan(
                when=began,
                execution=record["id"],
                recipe=record["recipe"],
                dataset=record["dataset"],
                plan=steps,
                smoke=is_smoke(record),
                parameters=record["parameters"],
            ),
            ReportWritten(when=ended, page=page),
            ExecutionEnded(when=ended, status="FINISHED", headline=dict(headline.metrics), tags=headline.tags),
        ]
    )
    for step in record["steps"]:
        run = recorder.finished_run(step["fingerprint"])
        if not step["cached"] and run is not None:
            writer.adopt(run)
