"""Registration of the work pool, deployments and automations on a Prefect server, so that its UI can launch runs.

Registration is idempotent. A schedule that was switched on in the UI stays on: `prefect deploy` alone would reset it to
prefect.yaml, and a nightly run would silently stop.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import CursusError
from tasks.environment import append_privately
from tasks.launchers.devices import devices
from tasks.servers.run_policy import POOL, job_template

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

WORKER = "this-machine"
DEFAULT_QUEUE = "default"
QUEUES = ("urgent", DEFAULT_QUEUE, "nightly")
"""Work queues of the pool in descending priority: runs waiting in an earlier queue start first."""


def register(root: Path, api: str, *, auth: str | None = None, environment: Mapping[str, str], log: Path) -> None:
    """Create the work pool, deploy all of `prefect.yaml` and install `automations/*.yaml` on the server at `api`.

    Raises CursusError with Prefect's last line of output and the log when it rejects a deployment.
    """
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.actions import WorkPoolCreate, WorkPoolUpdate
    from prefect.client.schemas.filters import WorkPoolFilter, WorkPoolFilterName

    with SyncPrefectClient(api, auth_string=auth) as client:
        named = WorkPoolFilter(name=WorkPoolFilterName(any_=[POOL]))
        if not client.read_work_pools(work_pool_filter=named):
            limit = len(devices()) or 1
            client.create_work_pool(WorkPoolCreate(name=POOL, type="process", concurrency_limit=limit))
            for priority, name in enumerate(QUEUES, start=1):
                # a new pool already has a queue called default, whose priority moves down for one of equal priority
                if name != DEFAULT_QUEUE:
                    client.create_work_queue(name, priority=priority, work_pool_name=POOL)
        client.update_work_pool(POOL, WorkPoolUpdate(base_job_template=job_template(root)))
        switches = _schedule_switches(client)
        _deploy(root, environment=environment, log=log)
        _restore(client, switches)
        for file in sorted((root / "automations").glob("*.yaml")):
            _install_automation(file, client)


def worker_seen(api: str, name: str, *, auth: str | None = None, since: datetime) -> bool:
    """Whether the worker called `name` has reported to the server at `api` after `since` (an aware time)."""
    from prefect.client.orchestration import SyncPrefectClient

    with SyncPrefectClient(api, auth_string=auth) as client:
        workers = client.read_workers_for_work_pool(POOL)
    return any(
        worker.name == name and worker.last_heartbeat_time is not None and worker.last_heartbeat_time >= since
        for worker in workers
    )


def _deploy(root: Path, *, environment: Mapping[str, str], log: Path) -> None:
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--prefect-file", "prefect.yaml"]
    result = subprocess.run(
        command,
        cwd=root,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    with append_privately(log) as output:
        output.write(result.stdout.encode())
    if result.returncode != 0:
        lines = [line.strip() for line in result.stdout.splitlines() if line.strip()]
        last = lines[-1] if lines else "(no output)"
        raise CursusError(
            f"{root / 'prefect.yaml'}: Prefect rejected a deployment; its last line of output: {last} "
            f"The whole output is in {log}."
        )


def _schedule_switches(client: SyncPrefectClient) -> dict[tuple[str, str], bool]:
    """Map (deployment name, schedule) to whether it is switched on, for all existing deployments."""
    return {
        (deployment.name, schedule.schedule.model_dump_json()): bool(schedule.active)
        for deployment in client.read_deployments()
        for schedule in deployment.schedules
    }


def _restore(client: SyncPrefectClient, switches: Mapping[tuple[str, str], bool]) -> None:
    for deployment in client.read_deployments():
        for schedule in deployment.schedules:
            active = switches.get((deployment.name, schedule.schedule.model_dump_json()), schedule.active)
            if active != schedule.active:
                client.update_deployment_schedule(deployment.id, schedule.id, active=active)


def _install_automation(file: Path, client: SyncPrefectClient) -> None:
    from prefect.events.schemas.automations import AutomationCore
    from ruamel.yaml import YAML

    automation = AutomationCore.model_validate(YAML(typ="safe").load(file))
    known = client.read_automations_by_name(automation.name)
    if known:
        client.update_automation(known[0].id, automation)
    else:
        client.create_automation(automation)
