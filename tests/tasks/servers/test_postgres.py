"""Prefect and MLflow on PostgreSQL: two flows at once, and everything of both is there."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tasks.environment import QUIET
from tasks.servers.processes import free_port, start, stop, tree, wait_until_answers
from tasks.tracking.recorder import Recorder

from .postgres import PASSWORD, PROGRAMS, postgres

pytestmark = pytest.mark.skipif(
    not PROGRAMS, reason="no PostgreSQL on this machine (Debian: apt-get install postgresql)"
)
REPOSITORY = Path(__file__).parents[3]
FLOW = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from prefect import flow, task
    from pipelines.lineage.store import Store
    from tasks.tracking.tracked_values import TrackedStep
    from tasks.tracking.executions import Tracker

    @task
    def step(tracker, name):
        tracker.begin_step(TrackedStep(name, "bert", name, "pretrain", 0, {"kind": "pretrain"}, {}, {}, name))
        for number in range(60):
            tracker.log_metrics(name, [{"step": number, "tokens": number, "train/loss": float(number)}])
        tracker.fail_step(name, "the test ends here")

    @flow(name="writer")
    def writer(root: Path, name: str):
        tracker = Tracker(root)
        tracker.begin_execution(name, "bert", "docs", [], Store(root / "empty"))
        for future in [step.submit(tracker, f"{name}-{part}") for part in (1, 2)]:
            future.result()
        tracker.finish_execution("FINISHED", {})
        assert tracker.failure is None, tracker.failure

    writer(Path(sys.argv[1]), sys.argv[2])
    """
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with postgres("prefect", "mlflow") as address:
        yield address


@pytest.mark.timeout(300)
def test_two_flows_at_once_are_told_whole(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their first calls find both databases empty, as two flows do that start right after `make up`."""
    port = free_port()
    environment = {
        **os.environ,
        **QUIET,
        "CURSUS_ROOT": str(tmp_path),
        "PYTHONPATH": str(REPOSITORY),
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"postgresql+asyncpg://{address}/prefect",
        "MLFLOW_TRACKING_URI": f"postgresql://{address}/mlflow",
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
    }
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    server = start("prefect", command, root=tmp_path, environment=environment, log=tmp_path / "server.log")
    try:
        assert wait_until_answers(f"http://127.0.0.1:{port}/api/health", server, seconds=120), (
            tmp_path / "server.log"
        ).read_text()
        flows = [
            subprocess.Popen(
                [sys.executable, "-c", FLOW, str(tmp_path), name],
                env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            for name in ("one", "two")
        ]  # fmt: skip
        seen = [line for flow in flows for line in psutil.Process(flow.pid).cmdline()]
        said = [flow.communicate(timeout=200)[0] for flow in flows]
        assert [flow.returncode for flow in flows] == [0, 0], said
    finally:
        seen += [word for process in tree(server) for word in process.cmdline()]
        stop(tree(server))
    assert not [word for word in seen if PASSWORD in word], "a password is where every user can read it"
    assert not list(tmp_path.glob("**/*.db")), "nothing was written to SQLite"

    monkeypatch.setenv("MLFLOW_TRACKING_URI", environment["MLFLOW_TRACKING_URI"])
    recorder = Recorder(tmp_path)
    runs = {run.info.run_name: run for run in recorder.client.search_runs(recorder.experiments())}
    assert set(runs) == {"bert one", "bert two", "one-1", "one-2", "two-1", "two-2"}
    for name in ("one-1", "one-2", "two-1", "two-2"):
        history = recorder.client.get_metric_history(runs[name].info.run_id, "train/loss")
        assert [(point.step, point.value) for point in history] == [(step, float(step)) for step in range(60)]

    import psycopg2

    with psycopg2.connect(f"postgresql://{address}/prefect") as connection, connection.cursor() as cursor:
        cursor.execute("select state_type::text, count(*) from flow_run group by 1")
        assert cursor.fetchall() == [("COMPLETED", 2)]
    connection.close()
