"""The work pool with a real server and worker: as many runs at once as there are devices, the urgent one first, and
none lost."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tasks.servers import deployments, processes
from tasks.servers.access import deploy
from tasks.servers.run_policy import POOL, PULL_STEP
from tasks.servers.services import Services

from .conftest import ACCOUNT, Start, ask

DECLARED = """
  - name: waiting
    entrypoint: waiting.waiting
    work_pool: *on_this_machine
"""
WAITING = '''
import os, time
from pathlib import Path
from prefect import flow
from tasks.environment import project_root
from tasks.servers.flow_runs import recorded

@flow(name="waiting")
def waiting(folder: str, name: str) -> None:
    """Says its process, and ends when it is let go."""
    with recorded(project_root()):
        Path(folder, name).write_text(str(os.getpid()))
        while not Path(folder, f"end-{name}").exists():
            time.sleep(0.1)
'''
PATIENCE = 120


@pytest.fixture
def launch(servers: Services, project: Path, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Launches a run that waits, by its name, in a queue of the pool; its id. Those that are left end with the test."""
    from prefect.client.orchestration import SyncPrefectClient

    (project / "waiting.py").write_text(WAITING, encoding="utf-8")
    settings = project / "prefect.yaml"
    before = settings.read_text(encoding="utf-8")
    settings.write_text(before + DECLARED, encoding="utf-8")
    names: list[str] = []
    with SyncPrefectClient(f"{servers.prefect_url}/api", auth_string=ACCOUNT) as client:
        deployment = client.create_deployment(
            client.create_flow_from_name("waiting"), "waiting",
            entrypoint="waiting.waiting", work_pool_name=POOL,
            pull_steps=[{"prefect.deployments.steps.set_working_directory": {"directory": str(project)}}],
        )  # fmt: skip

        def call(name: str, queue: str = deployments.DEFAULT_QUEUE) -> str:
            names.append(name)
            parameters = {"folder": str(tmp_path), "name": name}
            return str(
                client.create_flow_run_from_deployment(deployment, parameters=parameters, work_queue_name=queue).id
            )

        yield call
        for name in names:
            (tmp_path / f"end-{name}").touch()
        client.delete_deployment(deployment)
    settings.write_text(before, encoding="utf-8")
    (project / "waiting.py").unlink()


def until(what: Callable[[], Any], said: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < deadline, said
        time.sleep(0.2)
    return found


def state(services: Services, run: str) -> str:
    return str(ask(f"{services.prefect_url}/api/flow_runs/{run}")["state_type"])


@pytest.mark.timeout(600)
def test_runs_take_turns_the_urgent_one_first_and_a_killed_one_makes_room(
    servers: Services, launch: Callable[..., str], tmp_path: Path
) -> None:
    def process(name: str) -> int:
        file = tmp_path / name
        return int(until(lambda: file.exists() and file.read_text(), f"{name} did not start"))

    pool = ask(f"{servers.prefect_url}/api/work_pools/{POOL}")
    assert pool["concurrency_limit"] == 1
    first = launch("first")
    process("first")
    late, urgent = launch("late", "nightly"), launch("urgent", "urgent")
    heartbeat = ask(f"{servers.prefect_url}/api/work_pools/{POOL}/queues/filter", {})
    assert [queue["name"] for queue in sorted(heartbeat, key=lambda queue: queue["priority"])] == list(
        deployments.QUEUES
    )
    # the worker has asked for work several times since
    seen = time.monotonic()
    until(lambda: time.monotonic() - seen > 8, "")
    assert not (tmp_path / "late").exists() and not (tmp_path / "urgent").exists()
    assert state(servers, first) == "RUNNING"
    (tmp_path / "end-first").touch()
    killed = process("urgent")
    assert not (tmp_path / "late").exists()
    psutil.Process(killed).kill()
    process("late")
    assert state(servers, urgent) == "CRASHED"
    (tmp_path / "end-late").touch()
    until(lambda: state(servers, late) == "COMPLETED", "the last did not end")


@pytest.mark.timeout(600)
def test_a_run_that_ends_while_the_server_is_away_is_known_to_have_ended_well(
    servers: Services, launch: Callable[..., str], start: Start, tmp_path: Path
) -> None:
    run = launch("alone")
    pid = int(until(lambda: (file := tmp_path / "alone").exists() and file.read_text(), "it did not start"))
    assert servers.prefect is not None and servers.worker is not None
    for victim in processes.tree(servers.prefect):
        victim.kill()
    (tmp_path / "end-alone").touch()
    until(lambda: not psutil.pid_exists(pid), "a run whose server is away does not end")
    repaired = start().services
    assert repaired.prefect_url == servers.prefect_url
    assert state(repaired, run) == "COMPLETED"


@pytest.mark.timeout(240)
def test_a_deployment_in_a_pool_on_kubernetes_is_registered_as_the_page_on_clusters_says(
    servers: Services, project: Path
) -> None:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.actions import WorkPoolCreate

    page = (project / "docs" / "clusters.md").read_text()
    (block,) = re.findall(r"```yaml\n(  - name: regime-kubernetes\n.*?)```", page, re.DOTALL)
    template = json.loads((project / "deploy" / "kubernetes" / "work-pool.json").read_text())
    settings = project / "prefect.yaml"
    before = settings.read_text()
    api = f"{servers.prefect_url}/api"
    with SyncPrefectClient(api, auth_string=ACCOUNT) as client:
        client.create_work_pool(WorkPoolCreate(name="cursus-kubernetes", type="kubernetes", base_job_template=template))
        try:
            settings.write_text(f"{before}\n{block}")
            assert deploy(project) == api
            made = client.read_deployment_by_name("regime/regime-kubernetes")
            assert made.work_pool_name == "cursus-kubernetes" and made.job_variables["memory_limit"] == "32Gi"
            assert made.pull_steps == [{PULL_STEP: {"directory": "/srv/cursus"}}]
            assert made.parameter_openapi_schema is not None
            fields = made.parameter_openapi_schema["definitions"]["RunConfig"]["properties"]
            assert fields["dataset"]["enum"] == ["small"]
            run = client.create_flow_run_from_deployment(made.id)
            assert run.work_queue_name == "default" and state(servers, str(run.id)) == "SCHEDULED"
            client.delete_flow_run(run.id)
            client.delete_deployment(made.id)
        finally:
            settings.write_text(before)
            client.delete_work_pool("cursus-kubernetes")
    deploy(project)
