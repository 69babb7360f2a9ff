"""Registration of the work pool, deployments and automations on a Prefect server, so that its UI can launch runs.

Registration is idempotent. A schedule that was switched on or added in the UI stays: `prefect deploy` alone would reset
all of them to prefect.yaml, and a nightly run would silently stop.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from pipelines.errors import CursusError
from tasks.datasets.choices import choices
from tasks.environment import append_privately
from tasks.launchers.devices import devices
from tasks.servers.forms import form
from tasks.servers.run_policy import POOL, job_template

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import DeploymentSchedule
    from prefect.client.schemas.responses import DeploymentResponse

WORKER = "this-machine"
DEFAULT_QUEUE = "default"
QUEUES = ("urgent", DEFAULT_QUEUE, "nightly")
"""Work queues of the pool in descending priority: runs waiting in an earlier queue start first."""


def register(root: Path, api: str, *, auth: str | None = None, environment: Mapping[str, str], log: Path) -> None:
    """Create the work pool, deploy all of `prefect.yaml` and install `automations/*.yaml` on the server at `api`.

    Raises CursusError with Prefect's last line of output and the log when it rejects a deployment.
    """
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.actions import DeploymentUpdate, WorkPoolCreate, WorkPoolUpdate
    from prefect.client.schemas.filters import WorkPoolFilter, WorkPoolFilterName

    from tasks.servers.notification import save_block

    offered = choices(root)
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
        before = client.read_deployments()
        _deploy(root, environment=environment, log=log)
        _restore_schedules(client, before)
        for deployment in client.read_deployments():
            schema = form(deployment.parameter_openapi_schema or {}, offered)
            client.update_deployment(deployment.id, DeploymentUpdate(parameter_openapi_schema=schema))
        # in a thread of its own, since the caller's may run an event loop
        with ThreadPoolExecutor(1) as thread:
            notification = thread.submit(lambda: asyncio.run(save_block(api, auth))).result()
        for file in sorted((root / "automations").glob("*.yaml")):
            _install_automation(file, notification, client)


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


def _restore_schedules(client: SyncPrefectClient, before: Sequence[DeploymentResponse]) -> None:
    """Switch schedules on or off as they were, and add those that prefect.yaml does not have."""
    from prefect.client.schemas.actions import DeploymentScheduleCreate

    now = {deployment.id: deployment for deployment in client.read_deployments()}
    for deployment in before:
        if deployment.id not in now:
            continue
        declared = {_identity(schedule): schedule for schedule in now[deployment.id].schedules}
        for schedule in deployment.schedules:
            same = declared.get(_identity(schedule))
            if same is None:
                restored = DeploymentScheduleCreate(
                    schedule=schedule.schedule,
                    active=schedule.active,
                    parameters=schedule.parameters,
                    slug=schedule.slug,
                )
                client.create_deployment_schedules(deployment.id, [restored])
            elif same.active != schedule.active:
                client.update_deployment_schedule(deployment.id, same.id, active=schedule.active)


def _identity(schedule: DeploymentSchedule) -> str:
    return schedule.slug or schedule.schedule.model_dump_json()


def _install_automation(file: Path, notification: UUID, client: SyncPrefectClient) -> None:
    """Create or replace an automation; what sends a notification does so through the block `notification`."""
    from prefect.events.schemas.automations import AutomationCore
    from ruamel.yaml import YAML

    values = YAML(typ="safe").load(file)
    for action in values["actions"]:
        if action["type"] == "send-notification":
            action["block_document_id"] = str(notification)
    automation = AutomationCore.model_validate(values)
    known = client.read_automations_by_name(automation.name)
    if known:
        client.update_automation(known[0].id, automation)
    else:
        client.create_automation(automation)
