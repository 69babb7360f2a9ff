"""MLflow goes away while a run is told: a server that is killed, a database that another process holds."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pipelines.lineage.store import Store
from tasks.environment import state_folder
from tasks.servers import processes
from tasks.tracking import executions as tracking
from tasks.tracking.executions import Tracker
from tasks.tracking.recorded import has_pending
from tasks.tracking.recorder import Recorder
from tasks.tracking.tracked_values import TrackedStep
from tests.tasks.conftest import Builder

LINES = [{"step": step, "tokens": 100 * step, "train/loss": 9.0 / step} for step in range(1, 7)]
LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def mlflow_server(root: Path, port: int) -> Iterator[None]:
    """A real server on the checkout's database; leaving kills it with all its processes."""
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{state_folder(root) / 'mlflow.db'}"]
    command += ["--artifacts-destination", (state_folder(root) / "mlartifacts").as_uri()]
    server = processes.start("mlflow", command, root=root, environment=os.environ, log=root / "server.log")
    try:
        if not processes.wait_until_answers(f"http://127.0.0.1:{port}/health", server, seconds=120):
            raise AssertionError((root / "server.log").read_text())
        yield
    finally:
        for process in processes.tree(server):
            process.kill()
        processes.stop(processes.marked("mlflow", root))


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Another process holds the database alone."""
    with subprocess.Popen(
        [sys.executable, "-c", LOCK, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        yield
        holder.communicate()


def curve(recorder: Recorder, run: str) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in recorder.client.get_metric_history(run, "train/loss")]


WHOLE = [(int(line["step"]), line["train/loss"]) for line in LINES]


@pytest.mark.timeout(300)
def test_a_killed_server_misses_nothing_once_it_is_back(
    root: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One execution begins before and ends during the outage; another begins during it and goes on after it."""
    port = processes.free_port()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    monkeypatch.setattr(tracking, "PATIENCE", 1.0)
    general = builder.step("general", "pretrain", metrics={"validation/loss": 4.2})
    tuned = builder.step(
        "classify", "finetune", parents={"start": general.fingerprint}, metrics={"validation/accuracy": 0.7}
    )
    caplog.set_level(logging.WARNING, logger="cursus.tracking")
    first, second = Tracker(root), Tracker(root)
    nothing = Store(root / "empty")
    with mlflow_server(root, port):
        first.begin_execution("e1", "bert", "docs", [], nothing)
        first.begin_step(TrackedStep.of(general.provenance))
        first.log_metrics(general.fingerprint, LINES[:2])
        assert first._outbox is not None and first._outbox.drain(120)
    first.log_metrics(general.fingerprint, LINES[2:])
    first.finish_step(general)
    first.finish_execution("FINISHED", {"seconds": 5.0})
    assert has_pending(root)
    assert [record.message.partition(" (")[0] for record in caplog.records] == [
        "MLflow does not answer",
        "MLflow has not recorded everything",
    ]
    second.begin_execution("e2", "bert", "docs", [], nothing)
    second.link_cached(general)
    second.begin_step(TrackedStep.of(tuned.provenance))
    second.log_metrics(tuned.fingerprint, LINES)
    monkeypatch.setattr(tracking, "PATIENCE", 120.0)
    with mlflow_server(root, port):
        second.finish_step(tuned)
        assert second.register(builder.store, tuned.fingerprint, None, {}) == {"regime-text-classification": "1"}
        second.finish_execution("FINISHED", {})
        assert not has_pending(root)
        assert any("MLflow answers again" in record.message for record in caplog.records)
        recorder = Recorder(root)
        runs = {run.info.run_name: run for run in recorder.client.search_runs(recorder.experiments())}
        assert {run.info.status for run in runs.values()} == {"FINISHED"}
        steps = {"general · regime e1", "general · regime e2", "classify@0 · regime e2"}
        assert set(runs) == {"bert e1", "bert e2", *steps}
        assert runs["bert e1"].data.metrics == {"seconds": 5.0}
        for artifact in (general, tuned):
            run = recorder.finished_run(artifact.fingerprint)
            assert run is not None and curve(recorder, run) == WHOLE, "no gap, no repeat"
            assert recorder.model_of(artifact.fingerprint) is not None


@pytest.mark.timeout(120)
def test_a_locked_database_is_waited_for_by_nobody_and_told_when_it_is_free(root: Path, builder: Builder) -> None:
    general = builder.step("general", "pretrain", metrics={"validation/loss": 4.2})
    database = state_folder(root) / "mlflow.db"
    tracker = Tracker(root)
    with locked(database):
        # whichever of these waited for the database would wait for ever
        tracker.begin_execution("e1", "bert", "docs", [], Store(root / "empty"))
        tracker.begin_step(TrackedStep.of(general.provenance))
        tracker.log_metrics(general.fingerprint, LINES)
        tracker.finish_step(general)
        with (
            closing(sqlite3.connect(database, timeout=0)) as connection,
            pytest.raises(sqlite3.OperationalError) as refused,
        ):
            connection.execute("BEGIN IMMEDIATE")
        assert "PostgreSQL" in tracker.recorder.advice(str(refused.value))
    tracker.finish_execution("FINISHED", {})
    run = tracker.recorder.finished_run(general.fingerprint)
    assert run is not None and curve(tracker.recorder, run) == WHOLE
    assert not has_pending(root)
