"""What a Prefect server must know before a run can be launched from its UI: the pool, the deployments, the automations.

Registering twice changes nothing. A schedule that was switched on in the UI stays on: `prefect deploy` alone would put it
back to what prefect.yaml says, and a nightly run would stop without a word.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import CursusError
from tasks.launchers.devices import devices

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

POOL = "cursus"
DEFAULT_QUEUE = "default"
QUEUES = ("urgent", DEFAULT_QUEUE, "nightly")
"""Of the pool, the first before the others: what waits in it is started first."""


def register(root: Path, api: str, *, auth: str | None = None, environment: Mapping[str, str], log: Path) -> None:
    """Create the work pool, deploy all of `prefect.yaml` and install `automations/*.yaml` on the server at `api`.

    Raises CursusError where Prefect refuses a deployment, with its last words and the log.
    """
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.actions import WorkPoolCreate
    from prefect.client.schemas.filters import WorkPoolFilter, WorkPoolFilterName

    with SyncPrefectClient(api, auth_string=auth) as client:
        named = WorkPoolFilter(name=WorkPoolFilterName(any_=[POOL]))
        if not client.read_work_pools(work_pool_filter=named):
            at_once = len(devices()) or 1
            client.create_work_pool(WorkPoolCreate(name=POOL, type="process", concurrency_limit=at_once))
            for priority, name in enumerate(QUEUES, start=1):
                # the pool comes with a queue called default, which makes room for one of its priority
                if name != DEFAULT_QUEUE:
                    client.create_work_queue(name, priority=priority, work_pool_name=POOL)
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
    with log.open("a") as output:
        output.write(result.stdout)
    if result.returncode != 0:
        words = [line.strip() for line in result.stdout.splitlines() if line.strip()]
        said = words[-1] if words else "nothing"
        raise CursusError(
            f"{root / 'prefect.yaml'}: Prefect refused a deployment and said: {said} The rest is in {log}."
        )


def _schedule_switches(client: SyncPrefectClient) -> dict[tuple[str, str], bool]:
    """(deployment name, schedule) -> whether it is switched on, for everything deployed so far."""
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
