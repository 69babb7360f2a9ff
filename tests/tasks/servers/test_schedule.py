"""Schedules: what is switched on runs, stays on, and tells somebody when it fails.

SQLAlchemy 2.1 stops Prefect's scheduler without a word: everything works except that no schedule produces a run.
Screenshots lie in pytest's temporary folder, under `screenshots`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from tasks.servers import deployments
from tasks.servers.notification import FILE
from tasks.servers.services import Services
from tests.tasks.servers.receivers import mail_server, webhook

from .conftest import ACCOUNT, CHROMIUM, NO_CHROMIUM, ask, sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from prefect.client.orchestration import SyncPrefectClient

PATIENCE = 300
"""Seconds for a flow run to start and end: 20 on two free cores, many times that beside other work."""
AT_NIGHT = ["--cron", "0 3 * * *"]
ADDED = "small-brief-smoke"
"""The name of an added schedule."""


def nightly(services: Services) -> tuple[dict[str, Any], dict[str, Any]]:
    """The deployment of the regime that has a schedule, and that of prefect.yaml."""
    deployment = ask(f"{services.prefect_url}/api/deployments/name/regime/nightly")
    (schedule,) = [one for one in deployment["schedules"] if one["slug"] == "nightly"]
    return deployment, schedule


def runs_of(services: Services, deployment: str, *states: str) -> list[dict[str, Any]]:
    question = {
        "deployments": {"id": {"any_": [deployment]}},
        "flow_runs": {"state": {"type": {"any_": list(states)}}},
    }
    return list(ask(f"{services.prefect_url}/api/flow_runs/filter", question))


def until(what: Callable[[], Any], said: str, seconds: float = PATIENCE) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, said
        time.sleep(0.5)
    return found


@pytest.fixture
def client(servers: Services) -> Iterator[SyncPrefectClient]:
    from prefect.client.orchestration import SyncPrefectClient

    with SyncPrefectClient(f"{servers.prefect_url}/api", auth_string=ACCOUNT) as client:
        yield client


@pytest.fixture
def cursus(servers: Services, project: Path) -> Iterator[Callable[..., str]]:
    """The command line in the copy; what it has scheduled goes with the test."""
    scheduled: list[tuple[str, str]] = []

    def call(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "flows.cli.app", *arguments],
            cwd=project, env={**os.environ, "COLUMNS": "200"}, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        for line in done.stdout.splitlines():
            if line.startswith("scheduled  "):
                deployment, _, rest = line.removeprefix("scheduled  ").partition(": ")
                scheduled.append((deployment, rest.partition(",")[0]))
        return done.stdout

    yield call
    for deployment, name in scheduled:
        call("schedule", deployment, "--remove", name)


def night_comes(client: SyncPrefectClient, services: Services, deployment: str, name: str) -> str:
    """The next run of a schedule starts now instead of at its time; its id."""
    from prefect.states import Scheduled

    def next_run() -> dict[str, Any] | None:
        runs = runs_of(services, deployment, "SCHEDULED", "PENDING", "RUNNING")
        due = [run for run in runs if run["created_by"] and run["created_by"]["display_value"] == name]
        return min(due, key=lambda run: str(run["expected_start_time"]), default=None)

    run = until(next_run, "the scheduler made no run of an active cron schedule", 90)
    if run["state_type"] == "SCHEDULED":
        client.set_flow_run_state(UUID(run["id"]), Scheduled(scheduled_time=datetime.now(UTC)), force=True)
    return str(run["id"])


def ended(services: Services, run: str) -> dict[str, Any]:
    def final() -> dict[str, Any] | None:
        known: dict[str, Any] = ask(f"{services.prefect_url}/api/flow_runs/{run}")
        return known if known["state_type"] in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"} else None

    result: dict[str, Any] = until(final, "the run did not end")
    return result


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
@pytest.mark.timeout(900)
def test_nightly_is_switched_on_in_the_browser_runs_and_stays_on(
    page: Page,
    servers: Services,
    project: Path,
    tmp_path: Path,
    client: SyncPrefectClient,
    cursus: Callable[..., str],
    screenshots: Path,
) -> None:
    deployment, schedule = nightly(servers)
    assert schedule["active"] is False, "the shipped schedule must be paused"
    sign_in(page, servers)
    page.goto(f"{servers.prefect_url}/deployments/deployment/{deployment['id']}")
    toggle = page.locator(".deployment-schedule-card", has_text="nightly").get_by_role("switch")
    toggle.click()
    try:
        until(lambda: nightly(servers)[1]["active"], "the switch did nothing", 30)
        scheduled = until(lambda: runs_of(servers, deployment["id"], "SCHEDULED"), "no run of an active schedule", 90)
        assert all(run["auto_scheduled"] and "T02:00:00" in run["expected_start_time"] for run in scheduled)
        # test_browser.py launches the whole regime
        request = ("--data", "small", "--recipe", "brief", "--smoke")
        assert f"scheduled  nightly: {ADDED}" in cursus("schedule", "nightly", *AT_NIGHT, *request)
        run = night_comes(client, servers, deployment["id"], ADDED)
        assert ADDED in cursus("schedule", "nightly")
        page.goto(f"{servers.prefect_url}/deployments/deployment/{deployment['id']}")
        page.locator(".deployment-schedule-card", has_text=ADDED).wait_for()
        page.screenshot(path=screenshots / "nightly-1-on.png")
        finished = ended(servers, run)
        assert finished["state_type"] == "COMPLETED", finished["state"]
        assert finished["name"] == "brief on small, smoke" and finished["work_queue_name"] == "nightly"
        page.goto(f"{servers.prefect_url}/runs/flow-run/{run}")
        page.get_by_text("Completed", exact=True).first.wait_for()
        page.screenshot(path=screenshots / "nightly-2-run.png")
        api = f"{servers.prefect_url}/api"
        environment = {**os.environ, "PREFECT_API_URL": api, "CURSUS_ROOT": str(project)}
        deployments.register(project, api, auth=ACCOUNT, environment=environment, log=tmp_path / "deploy.log")
        after, shipped = nightly(servers)
        assert shipped["active"] is True, "registering again switched the user's schedule off"
        assert {one["slug"] for one in after["schedules"]} == {"nightly", ADDED}, "and forgot the added one"
        assert len(ask(f"{servers.prefect_url}/api/automations/filter", {})) == 2
    finally:
        client.update_deployment_schedule(deployment["id"], nightly(servers)[1]["id"], active=False)


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
@pytest.mark.timeout(600)
def test_a_scheduled_run_that_failed_is_reported_by_webhook_and_mail(
    page: Page,
    servers: Services,
    project: Path,
    client: SyncPrefectClient,
    cursus: Callable[..., str],
    screenshots: Path,
) -> None:
    params, notify = project / "params.yaml", project / ".cursus" / FILE
    before = params.read_text()
    deployment = UUID(ask(f"{servers.prefect_url}/api/deployments/name/data/data")["id"])
    with webhook() as (hook, hooks), mail_server() as (port, mails):
        assert "nobody is told" in cursus("schedule", "data", *AT_NIGHT, "--data", "small")
        lines = [f"json://127.0.0.1:{hook}/", f"mailto://127.0.0.1:{port}?from=cursus@example.org&to=ada@example.org"]
        notify.touch(mode=0o600)
        notify.write_text("\n".join(lines))
        try:
            params.write_text(before.replace("  small:", "  smaller:"))  # as a user does, during the day
            # Prefect orders events: those of a run that the scheduler made in the last five minutes wait for a quarter
            # of an hour, since the scheduler reports none
            parameters = {"config": {"dataset": "small"}}
            made = client.create_flow_run_from_deployment(deployment, parameters=parameters, tags=["auto-scheduled"])
            run = str(made.id)
            failed = ended(servers, run)
            assert failed["state_type"] == "FAILED", failed["state"]
            said = "no dataset is called 'small'. Did you mean 'smaller'?"
            assert said in failed["state"]["message"]
            until(lambda: hooks and mails, "nobody was told", 60)
        finally:
            params.write_text(before)
            notify.unlink()
    assert "data: failed" in hooks[0]["title"] and said in hooks[0]["message"]
    assert f"/runs/flow-run/{run}" in hooks[0]["message"]
    assert "Subject: data: failed" in mails[0] and "To: ada@example.org" in mails[0]
    sign_in(page, servers)
    page.goto(f"{servers.prefect_url}/runs/flow-run/{run}")
    page.get_by_text("Did you mean 'smaller'?").first.wait_for()
    assert page.get_by_text("Traceback").count() == 0
    page.screenshot(path=screenshots / "night-1-failed.png")
    page.goto(f"{servers.prefect_url}/events")
    page.get_by_text("Automation action executed").first.wait_for()
    page.screenshot(path=screenshots / "night-2-reported.png")
