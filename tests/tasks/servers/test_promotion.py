"""What the gate cannot decide is decided by a person in Prefect's UI, in a real browser: the form, the alias, the tags.

Screenshots of every step lie in pytest's temporary folder, under `screenshots`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.lineage.store import Store
from tasks.datasets.planning import store_folder
from tasks.decisions.journal import PromotionJournal
from tasks.decisions.record import PromotionDecision, now
from tasks.servers.services import Services
from tasks.tracking.champions import sync_champions
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry

from .conftest import CHROMIUM, NO_CHROMIUM, ask, sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PATIENCE = 300
"""Seconds for a flow run to start and judge: 15 on two free cores, many times that beside other work."""
MODEL = "small-text-classification"
ASKS = """
promotion:
  criteria: {quality: {margin: 1.0}, lineage: {}, reproducible: {commit: any, reproduced: true}}
"""
"""Nothing was made again, so the gate cannot tell, whatever the models have learnt."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


@pytest.fixture
def champion(project: Path, servers: Services) -> Iterator[str]:
    """The fingerprint of a trained model that is champion. The models are those of the regime's own test, where it
    ran."""
    command = [sys.executable, "-m", "flows.cli.app", "run", "--data", "small", "--smoke", "--until", "classify"]
    environment = {**os.environ, "PREFECT_API_URL": f"{servers.prefect_url}/api"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    params = project / "params.yaml"
    before = params.read_text()
    params.write_text(before.partition("\npromotion:")[0].rstrip("\n") + "\n" + ASKS)
    store = Store(store_folder(project))
    made = {record.seed: record.fingerprint for record in store.all() if record.stage == "classify"}
    (first, *_) = (made[seed] for seed in sorted(made))
    PromotionJournal(store).add(
        PromotionDecision(
            at=now(),
            action="promoted",
            model=MODEL,
            alias="champion",
            fingerprint=first,
            verdict="GO",
            decided_by="a test",
            reason="the first",
            evidence=None,
            champion=first,
            former=None,
        )
    )
    sync_champions(Registry(Recorder(project)), store)
    yield first
    params.write_text(before)


def until(services: Services, run_id: str, states: set[str]) -> dict[str, Any]:
    """The flow run, once it is in one of `states`."""
    deadline = time.monotonic() + PATIENCE
    while True:
        run: dict[str, Any] = ask(f"{services.prefect_url}/api/flow_runs/{run_id}")
        if run["state_type"] in states:
            return run
        assert run["state_type"] not in {"FAILED", "CRASHED", "CANCELLED", "COMPLETED"}, run["state"]
        assert time.monotonic() < deadline, f"still {run['state_type']} after {PATIENCE} s"
        time.sleep(1)


def launched(services: Services, model: str) -> str:
    """A run of the deployment, paused; its id."""
    deployment = ask(f"{services.prefect_url}/api/deployments/name/promote/promote")["id"]
    address = f"{services.prefect_url}/api/deployments/{deployment}/create_flow_run"
    run_id = str(ask(address, {"parameters": {"config": {"model": model}}})["id"])
    until(services, run_id, {"PAUSED"})
    return run_id


def field(page: Page, title: str) -> Locator:
    return page.locator(".p-modal .schema-form-property", has=page.get_by_text(title, exact=True)).last


def decide(page: Page, services: Services, run_id: str, decision: str, screenshots: Path) -> None:
    """Runs ▸ the paused run ▸ Resume: read the evidence, fill in the form, submit."""
    page.goto(f"{services.prefect_url}/runs/flow-run/{run_id}")
    page.get_by_role("button", name="Resume").first.click()
    page.get_by_text("INCONCLUSIVE", exact=True).first.wait_for()
    assert "macro_f1 minus the champion's is" in page.locator(".p-modal").inner_text()
    page.screenshot(path=screenshots / f"{decision}-1-asked.png")
    if decision == "promote":
        page.locator(".p-modal").get_by_role("switch").click()
    field(page, "Reason").locator("textarea").fill(f"seen by a person: {decision}")
    field(page, "Name").locator("textarea").fill("Ada Lovelace")
    page.screenshot(path=screenshots / f"{decision}-2-filled.png")
    page.get_by_role("button", name="Submit").click()
    until(services, run_id, {"COMPLETED"})
    page.reload()
    page.get_by_text("Promoted" if decision == "promote" else "Refused", exact=True).first.wait_for()
    page.screenshot(path=screenshots / f"{decision}-3-decided.png")
    page.get_by_text("Artifacts", exact=True).click()
    page.get_by_text("gate-criteria", exact=True).first.wait_for()


@pytest.mark.timeout(1500)
def test_a_person_decides_what_the_gate_cannot(
    page: Page, project: Path, servers: Services, champion: str, screenshots: Path, strangers: list[str]
) -> None:
    store, registry = Store(store_folder(project)), Registry(Recorder(project))
    sign_in(page, servers)
    other = next(each.fingerprint for each in store.all() if each.stage == "classify" and each.fingerprint != champion)

    decide(page, servers, launched(servers, other), "reject", screenshots)
    assert registry.fingerprint_at(MODEL, "champion") == champion
    decide(page, servers, launched(servers, other), "promote", screenshots)
    assert registry.fingerprint_at(MODEL, "champion") == other
    assert registry.fingerprint_at(MODEL, "former_champion") == champion

    judgings = [record for record in store.all() if record.recipe == "promotion"]
    assert len(judgings) == 1, "the second time, what was measured was in the store"
    client = registry.recorder.client
    tags = client.get_model_version_by_alias(MODEL, "champion").tags
    assert tags["cursus.gate.verdict"] == "INCONCLUSIVE" and tags["cursus.gate.decision"] == "promoted"
    assert tags["cursus.gate.decided_by"] == "Ada Lovelace"
    assert tags["cursus.gate.reason"] == "seen by a person: promote"
    assert tags["cursus.gate.evidence"] == judgings[0].fingerprint

    version = client.get_model_version_by_alias(MODEL, "champion").version
    page.goto(f"{servers.mlflow_url}/#/models/{MODEL}/versions/{version}")
    page.get_by_text("seen by a person: promote").first.wait_for()
    page.screenshot(path=screenshots / "mlflow.png")
    assert strangers == [], "a page asked for something outside this machine"
