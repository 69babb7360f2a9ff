"""SQLAlchemy 2.1 stops Prefect's scheduler without a word: everything works except that no schedule produces a run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tasks.servers import deployments
from tasks.servers.services import Services

from .conftest import ACCOUNT, ask


def nightly(services: Services) -> tuple[dict[str, Any], dict[str, Any]]:
    """The deployment of the regime that has a schedule."""
    deployment = ask(f"{services.prefect_url}/api/deployments/name/regime/nightly")
    (schedule,) = deployment["schedules"]
    return deployment, schedule


def switch(services: Services, *, active: bool) -> None:
    from prefect.client.orchestration import SyncPrefectClient

    deployment, schedule = nightly(services)
    with SyncPrefectClient(f"{services.prefect_url}/api", auth_string=ACCOUNT) as client:
        client.update_deployment_schedule(deployment["id"], schedule["id"], active=active)


@pytest.mark.timeout(240)
def test_a_schedule_that_is_switched_on_produces_runs_and_stays_on(
    servers: Services, project: Path, tmp_path: Path
) -> None:
    deployment, schedule = nightly(servers)
    assert schedule["active"] is False, "the shipped schedule must be paused"
    switch(servers, active=True)
    try:
        question = {
            "deployments": {"id": {"any_": [deployment["id"]]}},
            "flow_runs": {"state": {"type": {"any_": ["SCHEDULED"]}}},
        }
        deadline = time.monotonic() + 90
        while not (scheduled := ask(f"{servers.prefect_url}/api/flow_runs/filter", question)):
            assert time.monotonic() < deadline, "the scheduler made no run of an active cron schedule in 90 s"
            time.sleep(0.5)
        assert all(run["auto_scheduled"] and "T02:00:00" in run["expected_start_time"] for run in scheduled)
        api = f"{servers.prefect_url}/api"
        environment = {**os.environ, "PREFECT_API_URL": api, "CURSUS_ROOT": str(project)}
        deployments.register(project, api, auth=ACCOUNT, environment=environment, log=tmp_path / "deploy.log")
        assert nightly(servers)[1]["active"] is True, "registering again switched the user's schedule off"
        assert len(ask(f"{servers.prefect_url}/api/automations/filter", {})) == 1
    finally:
        switch(servers, active=False)
