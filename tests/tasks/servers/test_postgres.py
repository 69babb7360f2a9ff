"""The services of deploy/docker/compose.yaml, as processes of this machine, on PostgreSQL: they require the account,
refuse strangers, and record two concurrent flows completely."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.exceptions import PrefectHTTPStatusError
from ruamel.yaml import YAML

from tasks.environment import QUIET
from tasks.servers.accounts import VARIABLE
from tasks.servers.processes import Process, free_port, start, stop, tree, wait_until_answers
from tasks.servers.run_policy import POOL, job_template
from tasks.tracking.recorder import Recorder

from .conftest import ACCOUNT, status
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


@dataclass
class Composed:
    """The services of the compose file, of which each is started when a test needs it, in the checkout `root`."""

    root: Path
    address: str
    """`user:password@host:port` of PostgreSQL."""
    ports: Mapping[str, int]
    """Of prefect, mlflow, and the worker's health check, in place of those inside the containers."""
    started: list[Process] = field(default_factory=list)

    def environment(self, service: str) -> dict[str, str]:
        """The service's variables, with the account and PostgreSQL's address filled in, over this process's."""
        declared = YAML(typ="safe").load(REPOSITORY / "deploy/docker/compose.yaml")["services"][service]["environment"]
        known = {"CURSUS_ACCOUNT": ACCOUNT, "POSTGRES_PASSWORD": PASSWORD}
        values = {
            name: re.sub(r"\$\{(\w+):\?[^}]*\}", lambda one: known[one[1]], value)
            .replace(f"cursus:{PASSWORD}@postgres", self.address)
            .replace("http://prefect:4200", f"http://127.0.0.1:{self.ports['prefect']}")
            for name, value in declared.items()
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_"))}
        here = {
            "CURSUS_ROOT": str(self.root),
            "PYTHONPATH": str(REPOSITORY),
            "PREFECT_WORKER_WEBSERVER_PORT": str(self.ports["worker"]),
        }
        return {**inherited, **values, **here}

    def command(self, service: str) -> list[str]:
        """The service's command, on this machine's loopback address and at its free port."""
        declared = YAML(typ="safe").load(REPOSITORY / "deploy/docker/compose.yaml")["services"][service]["command"]
        words = ["127.0.0.1" if word == "0.0.0.0" else word for word in declared]
        assert words[0] == "python"
        return [sys.executable, *words[1:], *(["--port", str(self.ports[service])] if service in self.ports else [])]

    def start(self, service: str, healthy: str) -> None:
        """Start the service and wait until the URL `healthy` answers."""
        log = self.root / f"{service}.log"
        process = start(service, self.command(service), root=self.root, environment=self.environment(service), log=log)
        self.started.append(process)
        assert wait_until_answers(healthy, process, seconds=120), log.read_text()


@pytest.fixture(scope="module")
def composed(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Composed]:
    """With Prefect's server; all its processes are stopped at the end."""
    root = tmp_path_factory.mktemp("composed")
    for name in ("prefect.yaml", "params.yaml"):
        shutil.copy(REPOSITORY / name, root)
    shutil.copytree(REPOSITORY / "recipes", root / "recipes")
    shutil.copytree(REPOSITORY / "automations", root / "automations")
    services = Composed(root, address, {name: free_port() for name in ("prefect", "mlflow", "worker")})
    try:
        services.start("prefect", f"http://127.0.0.1:{services.ports['prefect']}/api/health")
        yield services
    finally:
        stop([handle for process in services.started for handle in tree(process)])


@pytest.mark.timeout(300)
def test_two_flows_at_once_are_told_whole(
    address: str, composed: Composed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their first calls find both databases empty, as two flows do that start right after `make up`."""
    environment = {**composed.environment("worker"), **QUIET, "PREFECT_HOME": str(tmp_path / "prefect")}
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
    seen += [word for process in composed.started for handle in tree(process) for word in handle.cmdline()]
    assert not [word for word in seen if PASSWORD in word], "a password is where every user can read it"
    folders = (tmp_path, composed.root)
    assert not [file for folder in folders for file in folder.rglob("*.db")], "nothing was written to SQLite"

    monkeypatch.setenv("MLFLOW_TRACKING_URI", environment["MLFLOW_TRACKING_URI"])
    recorder = Recorder(tmp_path)
    runs = {
        str(run.info.run_name).partition(" · ")[0]: run for run in recorder.client.search_runs(recorder.experiments())
    }
    assert set(runs) == {"bert one", "bert two", "one-1", "one-2", "two-1", "two-2"}
    for name in ("one-1", "one-2", "two-1", "two-2"):
        history = recorder.client.get_metric_history(runs[name].info.run_id, "train/loss")
        assert [(point.step, point.value) for point in history] == [(step, float(step)) for step in range(60)]

    import psycopg2

    with psycopg2.connect(f"postgresql://{address}/prefect") as connection, connection.cursor() as cursor:
        cursor.execute("select state_type::text, count(*) from flow_run group by 1")
        assert cursor.fetchall() == [("COMPLETED", 2)]
    connection.close()


@pytest.mark.timeout(300)
def test_strangers_are_refused_and_the_worker_starts_its_own_deployments_alone(composed: Composed) -> None:
    """As those of `cursus up` do: its attacks are in test_attacks.py."""
    api, tracking = (f"http://127.0.0.1:{composed.ports[name]}" for name in ("prefect", "mlflow"))
    composed.start("mlflow", f"{tracking}/health")
    registered = subprocess.run(
        composed.command("deployments"), cwd=composed.root, env=composed.environment("deployments"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert registered.returncode == 0, registered.stderr
    composed.start("worker", f"http://127.0.0.1:{composed.ports['worker']}/health")

    for url, question in [
        (f"{api}/api/flow_runs/filter", {}),
        (f"{tracking}/api/2.0/mlflow/experiments/search", {"max_results": 1}),
    ]:
        assert status(url, question)[0] in (401, 403)  # Prefect asks for its token first
        known = {"Authorization": f"Basic {b64encode(ACCOUNT.encode()).decode()}"}
        assert status(url, question, **known, Origin="https://evil.example")[0] == 403
        assert status(url, question, **known, Host="evil.example")[0] == 403
    with SyncPrefectClient(f"{api}/api", auth_string=ACCOUNT) as client:
        assert client.read_work_pool(POOL).base_job_template == job_template(composed.root)
        (own,) = (one for one in client.read_deployments() if one.name == "regime")
        with pytest.raises(PrefectHTTPStatusError, match="422"):
            client.create_flow_run_from_deployment(own.id, job_variables={"command": "true"})
        stranger = client.create_deployment(own.flow_id, "stranger", entrypoint="os.system", work_pool_name=POOL)
        run = client.create_flow_run_from_deployment(stranger)
        deadline = time.monotonic() + 60
        while (state := client.read_flow_run(run.id).state) is None or state.type.value != "CRASHED":
            assert time.monotonic() < deadline, state
            time.sleep(0.3)
        assert "prefect.yaml has no deployment 'stranger'" in str(state.message)


def test_without_an_account_nothing_is_served(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-m", "tasks.servers.foreground", "prefect"], cwd=REPOSITORY,
        env={**environment, "CURSUS_ROOT": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "these servers require an account: set CURSUS_ACCOUNT" in done.stderr
