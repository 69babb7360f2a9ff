"""What a user does in the two UIs, in a real browser: launch the regime from Prefect's form, find its runs in MLflow.

Screenshots of every step lie in pytest's temporary folder, under `screenshots`.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pipelines.lineage.store import Store
from tasks.datasets.planning import store_folder
from tasks.launchers import ORDER
from tasks.servers.services import Services

from .conftest import CHROMIUM, NO_CHROMIUM, PAGE_MILLISECONDS, ask, processes_of, sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PATIENCE = 600
"""Seconds for a smoke run of a small dataset: 90 on two free cores, many times that beside other work."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


def field(page: Page, title: str) -> Locator:
    """One field of the form, by its title; the enclosing object, which holds the same text, comes before it."""
    label = page.get_by_text(re.compile(f"^{title}( \\(Optional\\))?$"))
    return page.locator(".schema-form-property", has=label).last


def choose(page: Page, title: str, value: str) -> set[str]:
    """Open the list of a field, and choose a value; those that are drawn: of a long list, as many as fit."""
    field(page, title).locator(".p-select-button__control").click()
    options = page.locator(".p-select-option")
    options.first.wait_for()
    offered = set(options.all_inner_texts())
    page.locator(".p-select-option", has_text=re.compile(f"^{re.escape(value)}$")).first.click()
    page.get_by_text("Parameters", exact=True).first.click()  # of some, several may be chosen
    options.first.wait_for(state="hidden")
    return offered


def listed(services: Services, deployment: str, model: str, key: str) -> set[str]:
    """All values that the form of a deployment lists for a key."""
    found = ask(f"{services.prefect_url}/api/deployments/name/{deployment}/{deployment}")
    return set(found["parameter_openapi_schema"]["definitions"][model]["properties"][key]["enum"])


def open_form(page: Page, services: Services, deployment: str) -> None:
    """Deployments ▸ a deployment ▸ Run ▸ Custom run."""
    page.goto(f"{services.prefect_url}/deployments")
    page.locator("a[href*='/deployments/deployment/']", has_text=re.compile(f"^{deployment}$")).first.click()
    page.wait_for_url("**/deployments/deployment/**")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("link", name="Custom run").click()
    page.wait_for_url("**/run?**")
    page.get_by_text("Dataset", exact=False).first.wait_for()


def submitted(page: Page, services: Services) -> str:
    """Submit the form, and open the new run; its id."""
    runs = f"{services.prefect_url}/api/flow_runs/filter"
    before = {run["id"] for run in ask(runs, {})}
    page.get_by_role("button", name="Submit").click()
    deadline = time.monotonic() + PAGE_MILLISECONDS / 1000
    while not (made := {run["id"] for run in ask(runs, {})} - before):
        assert time.monotonic() < deadline, "the form was not accepted"
        page.wait_for_timeout(200)
    (new,) = made
    page.goto(f"{services.prefect_url}/runs/flow-run/{new}")
    return str(new)


def until(page: Page, services: Services, run_id: str, *states: str) -> dict[str, Any]:
    """The run's record, once it is in one of `states`. Its page is left meanwhile: where there is no graphics card,
    drawing a running flow takes half a core from it."""
    address = page.url
    page.goto("about:blank")
    deadline = time.monotonic() + PATIENCE
    while (run := ask(f"{services.prefect_url}/api/flow_runs/{run_id}"))["state_type"] not in states:
        assert run["state_type"] not in {"FAILED", "CRASHED", "CANCELLED"}, f"{run['state']}\n{logs(services, run_id)}"
        assert time.monotonic() < deadline, f"still {run['state_type']} after {PATIENCE} s\n{logs(services, run_id)}"
        time.sleep(0.3)
    page.goto(address)
    badge = page.locator(".page-heading-flow-run__flow-details .state-badge")
    badge.get_by_text(run["state_name"], exact=True).wait_for()
    return dict(run)


def press(page: Page, button: str, confirmation: str) -> None:
    """Press a button of the run's page, and confirm it."""
    page.get_by_role("button", name=button, exact=True).first.click()
    page.locator(".p-modal").get_by_role("button", name=confirmation, exact=True).click()
    page.locator(".p-modal").wait_for(state="hidden")


def trainings(project: Path) -> list[psutil.Process]:
    """The processes of the copy that train."""
    found = []
    for process in processes_of(project):
        with suppress(psutil.Error):
            if any(word.startswith("pipelines.training.ranks") for word in process.cmdline()):
                found.append(process)
    return found


def began(project: Path, stage: str) -> str:
    """When the artifact of a stage was begun, once it is finished."""
    store, deadline = Store(store_folder(project)), time.monotonic() + PATIENCE
    while not (known := [record for record in store.all() if record.stage == stage]):
        assert time.monotonic() < deadline, f"{stage} was not finished in {PATIENCE} s"
        time.sleep(0.1)
    (record,) = known
    return str(record.environment.started)


def logs(services: Services, run_id: str) -> str:
    lines = ask(f"{services.prefect_url}/api/logs/filter", {"logs": {"flow_run_id": {"any_": [run_id]}}})
    return "\n".join(line["message"] for line in lines[-30:])


def artifacts_seen(page: Page, services: Services, run_id: str, screenshots: Path) -> set[str]:
    """The types of the run's artifacts, each of which its page shows by key."""
    page.get_by_text("Artifacts", exact=True).click()
    known = ask(f"{services.prefect_url}/api/artifacts/filter", {"flow_runs": {"id": {"any_": [run_id]}}})
    artifacts = [artifact for artifact in known if artifact["key"]]  # the others are states of attempts
    for artifact in artifacts:
        page.get_by_text(artifact["key"], exact=True).first.wait_for()
    page.screenshot(path=screenshots / "7-artifacts.png", full_page=True)
    return {artifact["type"] for artifact in artifacts}


def open_report(page: Page, services: Services, run_id: str, screenshots: Path) -> None:
    """Artifacts ▸ report ▸ its link: the page opens over http; no artifact of the run links a file."""
    artifacts = ask(f"{services.prefect_url}/api/artifacts/filter", {"flow_runs": {"id": {"any_": [run_id]}}})
    assert not [one["key"] for one in artifacts if "file://" in str(one["data"])]
    (report,) = [one for one in artifacts if one["key"] == "report"]
    page.goto(f"{services.prefect_url}/artifacts/artifact/{report['id']}")
    address = str(page.locator(f"a[href^='{services.mlflow_url}/reports/']").first.evaluate("link => link.href"))
    page.goto(address)
    page.get_by_text("Smoke run.").first.wait_for()
    page.screenshot(path=screenshots / "7-report.png")


def find_in_mlflow(page: Page, services: Services, screenshots: Path) -> None:
    """Experiments ▸ the execution that was completed; every stage has a nested run of the attempt that computed it."""
    api = f"{services.mlflow_url}/api/2.0/mlflow"
    experiments = ask(f"{api}/experiments/search", {"max_results": 50})["experiments"]
    ids = [experiment["experiment_id"] for experiment in experiments if experiment["name"].startswith("small")]
    runs = ask(f"{api}/runs/search", {"experiment_ids": ids, "max_results": 200}).get("runs", [])
    executions = [run for run in runs if "mlflow.parentRunId" not in tags(run)]
    finished = [run for run in executions if run["info"]["status"] == "FINISHED"]
    execution = max(finished, key=lambda run: int(run["info"]["start_time"]))
    assert {run["info"]["status"] for run in runs} <= {"FINISHED", "FAILED", "KILLED"}
    words = " ".join(run["info"]["run_name"] for run in runs if run["info"]["status"] == "FINISHED")
    for stage in ("general", "domain", "task", "classify", "small"):
        assert stage in words, f"no finished run of stage {stage}: {words}"
    experiment = execution["info"]["experiment_id"]
    page.goto(f"{services.mlflow_url}/#/experiments/{experiment}/runs")
    page.get_by_role("link", name=execution["info"]["run_name"]).first.wait_for()
    page.screenshot(path=screenshots / "8-mlflow-runs.png")
    page.get_by_role("link", name=execution["info"]["run_name"]).first.click()
    page.get_by_text(execution["info"]["run_id"]).first.wait_for()
    page.screenshot(path=screenshots / "9-mlflow-run.png")


def tags(run: dict[str, Any]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in run["data"].get("tags", [])}


@pytest.mark.timeout(300)
def test_a_mistake_in_the_form_is_refused_with_what_was_meant(
    page: Page, servers: Services, screenshots: Path, strangers: list[str]
) -> None:
    before = ask(f"{servers.prefect_url}/api/flow_runs/count", {})
    sign_in(page, servers)
    open_form(page, servers, "regime")
    assert page.get_by_text("Property is type").count() == 0 and page.get_by_text("None", exact=True).count() == 0
    assert field(page, "Dataset").inner_text().splitlines()[-1] == "small", "the default dataset"
    page.screenshot(path=screenshots / "1-form.png", full_page=True)
    recipes = listed(servers, "regime", "RunConfig", "recipe")
    assert {"adapter", "bert"} <= choose(page, "Recipe", "bert") <= recipes >= {"regime", "crf"}
    assert {"hour", "minilm"} <= choose(page, "Variants", "minilm")
    page.screenshot(path=screenshots / "2-chosen.png", full_page=True)
    page.get_by_role("button", name="Submit").click()
    page.get_by_text("'minilm' is not one of the choices. Known: hour, short_then_full.").wait_for()
    page.screenshot(path=screenshots / "3-refused.png")
    open_form(page, servers, "claim")
    shown = choose(page, "Claim", "adapter/within_a_point")
    assert shown <= listed(servers, "claim", "ClaimConfig", "claim") >= {"crf/entities", "scl/few_labels"}
    page.screenshot(path=screenshots / "4-claim.png", full_page=True)
    assert ask(f"{servers.prefect_url}/api/flow_runs/count", {}) == before and strangers == []


@pytest.mark.timeout(1200)
def test_a_user_launches_retries_and_cancels_the_regime_in_prefect_and_finds_it_in_mlflow(
    page: Page, servers: Services, project: Path, screenshots: Path, strangers: list[str]
) -> None:
    sign_in(page, servers)
    open_form(page, servers, "regime")
    field(page, "Smoke").get_by_role("switch").click()
    run_id = submitted(page, servers)
    first = began(project, "general")
    while not list((store_folder(project) / ".work").glob(f"*/{ORDER}")):
        time.sleep(0.01)
    for process in trainings(project):
        process.kill()
    failed = until(page, servers, run_id, "FAILED")
    assert failed["parameters"]["config"] == {"dataset": "small", "variants": [], "smoke": True}
    assert failed["name"] == "regime on small, smoke" and "SIGKILL" in failed["state"]["message"]
    assert "Traceback" not in logs(servers, run_id)
    page.screenshot(path=screenshots / "5-failed.png")

    press(page, "Retry", "Retry")
    until(page, servers, run_id, "RUNNING")
    while not trainings(project):
        time.sleep(0.1)
    press(page, "Cancel", "Confirm")
    cancelled = until(page, servers, run_id, "CANCELLED")
    assert cancelled["run_count"] == 2
    page.screenshot(path=screenshots / "6-cancelled.png")
    deadline = time.monotonic() + PATIENCE
    while trainings(project):
        assert time.monotonic() < deadline, "a cancelled run goes on training"
        time.sleep(0.2)

    press(page, "Retry", "Retry")
    finished = until(page, servers, run_id, "COMPLETED")
    assert finished["run_count"] == 3 and began(project, "general") == first, "what was finished is computed again"
    page.screenshot(path=screenshots / "7-completed.png", full_page=True)
    assert {"progress", "table", "markdown"} <= artifacts_seen(page, servers, run_id, screenshots)
    open_report(page, servers, run_id, screenshots)
    find_in_mlflow(page, servers, screenshots)
    assert strangers == [], "a page asked for something outside this machine"
