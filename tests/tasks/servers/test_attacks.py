"""Attempts to have the worker run a stranger's command: by a web page, by another user of the machine, and by somebody
who has the account."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import pytest

from tasks.servers.run_policy import POOL, PULL_STEP
from tasks.servers.services import Services
from tests.tasks.servers.receivers import webhook

from .conftest import ACCOUNT, CHROMIUM, NO_CHROMIUM, PAGE_MILLISECONDS, QUIET, ask, sign_in, status

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

PATIENCE = 120
OPENED = """
<html><body>open<script>
const attempts = ATTEMPTS;
(async () => {
  const seen = [];
  for (const [address, options] of attempts) {
    try { const answer = await fetch(address, options); seen.push(answer.type + " " + answer.status); }
    catch (error) { seen.push("blocked"); }
  }
  document.title = JSON.stringify(seen);
})();
</script></body></html>
"""
"""A page that asks the servers, and writes into its title what it was answered."""


def runs(services: Services) -> int:
    return int(ask(f"{services.prefect_url}/api/flow_runs/count", {}))


def deployment_id(services: Services) -> str:
    return str(ask(f"{services.prefect_url}/api/deployments/name/regime/regime")["id"])


def test_without_the_account_nothing_is_read_or_started(servers: Services, tmp_path: Path) -> None:
    api, before = f"{servers.prefect_url}/api", runs(servers)
    command = {"job_variables": {"command": f"touch {tmp_path / 'attacked'}"}}
    create = f"{api}/deployments/{deployment_id(servers)}/create_flow_run"
    for url, body in [(create, command), (f"{api}/flow_runs/filter", {}), (f"{api}/admin/settings", None)]:
        code, headers = status(url, body, Origin="https://evil.example")
        assert code in (401, 403)
        assert headers.get("access-control-allow-origin", "") not in ("*", "https://evil.example")
        assert status(url, body)[0] in (401, 403)
    for url in (f"{servers.mlflow_url}/api/2.0/mlflow/experiments/create", f"{servers.mlflow_url}/ajax-api/2.0/mlflow"):
        assert status(url, {"name": "attacked"})[0] == 401
        assert status(url, {"name": "attacked"}, Origin="https://evil.example")[0] in (401, 403)
    assert runs(servers) == before and not (tmp_path / "attacked").exists()


def test_a_name_that_resolves_to_this_machine_is_refused(servers: Services) -> None:
    for url in (f"{servers.prefect_url}/", f"{servers.prefect_url}/api/health", f"{servers.mlflow_url}/"):
        assert status(url, None)[0] in (200, 401)
    assert status(f"{servers.prefect_url}/api/health", None, Host="evil.example")[0] == 403
    assert status(f"{servers.mlflow_url}/api/2.0/mlflow/experiments/search", {}, Host="evil.example")[0] in (401, 403)


@pytest.fixture
def client(servers: Services) -> Iterator[SyncPrefectClient]:
    from prefect.client.orchestration import SyncPrefectClient

    with SyncPrefectClient(f"{servers.prefect_url}/api", auth_string=ACCOUNT) as client:
        yield client


def refused_message(client: SyncPrefectClient, run: Any) -> str:
    """Why the worker did not start a run."""
    deadline = time.monotonic() + PATIENCE
    while True:
        state = client.read_flow_run(run.id).state
        assert state is not None and state.type.value in {"SCHEDULED", "PENDING", "CRASHED"}, state
        if state.type.value == "CRASHED":
            return str(state.message)
        assert time.monotonic() < deadline, f"the run is still {state.type.value}"
        time.sleep(0.3)


@pytest.mark.timeout(300)
def test_with_the_account_a_run_cannot_change_its_process(
    servers: Services, client: SyncPrefectClient, project: Path, tmp_path: Path
) -> None:
    """Prefect refuses `job_variables` by the pool's template; the worker refuses what has been changed around it."""
    from prefect.client.schemas.actions import WorkPoolUpdate
    from prefect.exceptions import PrefectHTTPStatusError

    attacked = tmp_path / "attacked"
    known = client.read_deployment(deployment_id(servers))
    for variables in ({"command": f"touch {attacked}"}, {"env": {"PYTHONPATH": str(tmp_path)}}, {"working_dir": "/"}):
        with pytest.raises(PrefectHTTPStatusError) as refused:
            client.create_flow_run_from_deployment(known.id, job_variables=variables)
        assert refused.value.response.status_code == 422
        with pytest.raises(PrefectHTTPStatusError):
            client.create_deployment(
                known.flow_id, "attacked", entrypoint=known.entrypoint, work_pool_name=POOL, job_variables=variables
            )
    template = client.read_work_pool(POOL).base_job_template
    ours = [{PULL_STEP: {"directory": str(project)}}]
    shell = [*ours, {"prefect.deployments.steps.run_shell_script": {"script": f"touch {attacked}"}}]
    for name, entrypoint, steps, reason in [
        ("attacked", known.entrypoint, ours, "prefect.yaml has no deployment 'attacked'"),
        ("stage", "os.system", ours, "prefect.yaml has no deployment 'stage' of 'os.system'"),
        ("stage", "flows.stage.stage", shell, "steps that prefect.yaml does not have"),
    ]:
        flow = client.create_flow_from_name(f"attack {name}")
        made = client.create_deployment(flow, name, entrypoint=entrypoint, work_pool_name=POOL, pull_steps=steps)
        assert reason in refused_message(client, client.create_flow_run_from_deployment(made))
        client.delete_deployment(made)
    try:
        changed = {**template, "job_configuration": {**template["job_configuration"], "command": f"touch {attacked}"}}
        client.update_work_pool(POOL, WorkPoolUpdate(base_job_template=changed))
        run = client.create_flow_run_from_deployment(known.id, parameters={"config": {"smoke": True}})
        assert "the template of the work pool 'cursus' was changed" in refused_message(client, run)
    finally:
        client.update_work_pool(POOL, WorkPoolUpdate(base_job_template=template))
    assert not attacked.exists()


def block_of(services: Services, slug: str, **data: Any) -> str:
    """The id of a block that a user with the account saves in the UI."""
    api = f"{services.prefect_url}/api"
    kind = ask(f"{api}/block_types/slug/{slug}")["id"]
    (schema, *_) = ask(f"{api}/block_schemas/filter", {"block_schemas": {"block_type_id": {"any_": [kind]}}})
    block = {"name": f"attack-{slug}", "data": data, "block_type_id": kind, "block_schema_id": schema["id"]}
    return str(ask(f"{api}/block_documents/", block)["id"])


@pytest.mark.timeout(300)
def test_with_the_account_the_server_cannot_be_made_to_call_an_address(
    servers: Services, client: SyncPrefectClient
) -> None:
    """A webhook or a notification to an address of one's own choice, by an automation that an event triggers."""
    api = f"{servers.prefect_url}/api"
    with webhook() as (port, received):
        actions = [
            {
                "type": "call-webhook",
                "block_document_id": block_of(servers, "webhook", method="POST", url=f"http://127.0.0.1:{port}/"),
                "payload": "{}",
            },
            {
                "type": "send-notification",
                "block_document_id": block_of(servers, "slack-webhook", url=f"json://127.0.0.1:{port}/"),
                "subject": "attack",
                "body": "attack",
            },
        ]
        trigger = {"type": "event", "posture": "Reactive", "expect": ["attack"], "threshold": 1, "within": 0}
        automation = {"name": "attack", "trigger": trigger, "actions": actions}
        made = ask(f"{api}/automations/", automation)["id"]

        def refusals() -> list[str]:
            question = {"filter": {"event": {"name": ["prefect.automation.action.failed"]}}}
            return [one["payload"]["reason"] for one in ask(f"{api}/events/filter", question)["events"]]

        try:
            deadline = time.monotonic() + PATIENCE
            while sum("Addresses of this checkout" in one or "addresses" in one for one in refusals()) < 2:
                # an automation is loaded a moment after it was saved
                event = {"id": str(uuid4()), "occurred": datetime.now(UTC).isoformat(), "event": "attack"}
                client.request("POST", "/events", json=[{**event, "resource": {"prefect.resource.id": "attack"}}])
                assert time.monotonic() < deadline, f"not refused: {refusals()}"
                time.sleep(1)
        finally:
            client.delete_automation(UUID(made))
    assert received == []


@pytest.fixture
def foreign(servers: Services, tmp_path: Path) -> Iterator[str]:
    """The address of a page of another origin that attacks both servers as soon as it is opened."""
    create = f"{servers.prefect_url}/api/deployments/{deployment_id(servers)}/create_flow_run"
    body = json.dumps({"job_variables": {"command": f"touch {tmp_path / 'attacked'}"}})
    experiment = f"{servers.mlflow_url}/api/2.0/mlflow/experiments/create"
    as_json, plain = {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}
    attempts = [
        (address, {"method": "POST", "body": text, "credentials": "include", **mode})
        for address, text in ((create, body), (experiment, '{"name": "attacked"}'))
        for mode in ({"headers": as_json}, {"headers": plain}, {"headers": plain, "mode": "no-cors"})
    ]
    attempts += [(f"{servers.prefect_url}/api/admin/settings", {"credentials": "include"})]
    page = OPENED.replace("ATTEMPTS", json.dumps(attempts)).encode()

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
@pytest.mark.timeout(300)
def test_a_web_page_in_the_users_browser_starts_nothing(servers: Services, foreign: str, tmp_path: Path) -> None:
    """The browser has signed in to Prefect's UI and knows the account of MLflow, as the user's own browser has."""
    from playwright.sync_api import sync_playwright

    name, _, password = ACCOUNT.partition(":")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(http_credentials={"username": name, "password": password})
        page.set_default_timeout(PAGE_MILLISECONDS)
        sign_in(page, servers)
        page.goto(servers.mlflow_url)
        before = runs(servers)
        page.goto(foreign)
        page.wait_for_function("document.title.startsWith('[')")
        seen = json.loads(page.title())
        page.goto(servers.prefect_url)
        page.get_by_text("Deployments", exact=True).first.wait_for()
        assert page.locator("input[type=password]").count() == 0, "not signed in while it was attacked"
        browser.close()
    assert len(seen) == 7 and set(seen) <= {"blocked", "opaque 0"}, "an answer could be read, or was no refusal"
    assert runs(servers) == before
    experiments = ask(f"{servers.mlflow_url}/api/2.0/mlflow/experiments/search", {"max_results": 50})["experiments"]
    assert "attacked" not in {experiment["name"] for experiment in experiments}
    assert not (tmp_path / "attacked").exists()
