"""What a user does in the two UIs, in a real browser: launch the regime from Prefect's form, find its runs in MLflow.

Screenshots of every step lie in pytest's temporary folder, under `screenshots`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import pytest

from tasks.servers.services import Services

from .conftest import CHROMIUM, NO_CHROMIUM, ask, sign_in

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

PATIENCE = 600
"""Seconds for a smoke run of a small dataset: 90 on two free cores, many times that beside other work."""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)


def field(page: Page, title: str) -> Locator:
    """One field of the form, by its title; the enclosing object, which holds the same text, comes before it."""
    return page.locator(".schema-form-property", has=page.get_by_text(f"{title} (Optional)", exact=True)).last


def launch_smoke_run(page: Page, services: Services, screenshots: Path) -> str:
    """Deployments ▸ regime ▸ Run ▸ Custom run: fill in the form, submit, open the new run. Its id."""
    sign_in(page, services)
    page.get_by_text("Deployments", exact=True).first.click()
    page.locator("a[href*='/deployments/deployment/']", has_text="regime").first.click()
    page.wait_for_url("**/deployments/deployment/**")
    page.screenshot(path=screenshots / "1-deployment.png")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("link", name="Custom run").click()
    page.wait_for_url("**/run?**")
    dataset = field(page, "Dataset")
    dataset.get_by_role("button", name="str").click()
    dataset.locator("textarea, input[type=text]").first.fill("small")
    field(page, "Smoke").get_by_role("switch").click()
    page.screenshot(path=screenshots / "2-form.png", full_page=True)
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url("**tab=Runs")
    page.locator("a[href*='/runs/flow-run/']").first.click()
    page.wait_for_url("**/runs/flow-run/**")
    return urlparse(page.url).path.rpartition("/")[2]


def until(page: Page, services: Services, run_id: str, reached: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The run's record, once `reached` says yes to it."""
    deadline = time.monotonic() + PATIENCE
    while not reached(run := ask(f"{services.prefect_url}/api/flow_runs/{run_id}")):
        assert run["state_type"] not in {"FAILED", "CRASHED", "CANCELLED"}, f"{run['state']}\n{logs(services, run_id)}"
        assert time.monotonic() < deadline, f"still {run['state_type']} after {PATIENCE} s\n{logs(services, run_id)}"
        page.wait_for_timeout(500)
    return dict(run)


def wait_until_completed(page: Page, services: Services, run_id: str, screenshots: Path) -> dict[str, Any]:
    """The run's record, once its page has come to show the badge `Running`, and later `Completed`."""
    address, badge = page.url, page.locator(".page-heading-flow-run__flow-details .state-badge")
    until(page, services, run_id, lambda _: badge.inner_text() in ("Running", "Completed"))
    page.goto("about:blank")  # where there is no graphics card, drawing a running flow takes half a core from it
    finished = until(page, services, run_id, lambda run: run["state_name"] == "Completed")
    page.goto(address)
    badge.get_by_text("Completed", exact=True).wait_for()
    page.screenshot(path=screenshots / "3-completed.png", full_page=True)
    return finished


def logs(services: Services, run_id: str) -> str:
    lines = ask(f"{services.prefect_url}/api/logs/filter", {"logs": {"flow_run_id": {"any_": [run_id]}}})
    return "\n".join(line["message"] for line in lines[-30:])


def artifacts_seen(page: Page, services: Services, run_id: str, screenshots: Path) -> set[str]:
    """The types of the run's artifacts, each of which its page shows by key."""
    page.get_by_text("Artifacts", exact=True).click()
    artifacts = ask(f"{services.prefect_url}/api/artifacts/filter", {"flow_runs": {"id": {"any_": [run_id]}}})
    for artifact in artifacts:
        page.get_by_text(artifact["key"], exact=True).first.wait_for()
    page.screenshot(path=screenshots / "4-artifacts.png", full_page=True)
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
    page.screenshot(path=screenshots / "5-report.png")


def find_in_mlflow(page: Page, services: Services, screenshots: Path) -> None:
    """Experiments ▸ the newest execution's run, with a nested run for every stage."""
    api = f"{services.mlflow_url}/api/2.0/mlflow"
    experiments = ask(f"{api}/experiments/search", {"max_results": 50})["experiments"]
    ids = [experiment["experiment_id"] for experiment in experiments if experiment["name"].startswith("small")]
    runs = ask(f"{api}/runs/search", {"experiment_ids": ids, "max_results": 200}).get("runs", [])
    parent_of = {run["info"]["run_id"]: tags(run).get("mlflow.parentRunId") for run in runs}
    (execution,) = [run for run in runs if parent_of[run["info"]["run_id"]] is None]
    nested = [run for run in runs if parent_of[run["info"]["run_id"]] == execution["info"]["run_id"]]
    assert {run["info"]["status"] for run in [execution, *nested]} == {"FINISHED"}
    words = " ".join(run["info"]["run_name"] for run in nested)
    for stage in ("general", "domain", "task", "classify", "small"):
        assert stage in words, f"no nested run of stage {stage}: {words}"
    experiment = execution["info"]["experiment_id"]
    page.goto(f"{services.mlflow_url}/#/experiments/{experiment}/runs")
    page.get_by_role("link", name=execution["info"]["run_name"]).first.wait_for()
    page.screenshot(path=screenshots / "6-mlflow-runs.png")
    page.get_by_role("link", name=execution["info"]["run_name"]).first.click()
    page.get_by_text(execution["info"]["run_id"]).first.wait_for()
    page.screenshot(path=screenshots / "7-mlflow-run.png")


def tags(run: dict[str, Any]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in run["data"].get("tags", [])}


@pytest.mark.timeout(800)
def test_a_user_launches_the_regime_from_prefect_and_finds_it_in_mlflow(
    page: Page, servers: Services, screenshots: Path, strangers: list[str]
) -> None:
    run_id = launch_smoke_run(page, servers, screenshots)
    run = wait_until_completed(page, servers, run_id, screenshots)
    assert run["parameters"]["config"].items() >= {"dataset": "small", "smoke": True}.items()
    assert {"progress", "table", "markdown"} <= artifacts_seen(page, servers, run_id, screenshots)
    open_report(page, servers, run_id, screenshots)
    find_in_mlflow(page, servers, screenshots)
    assert strangers == [], "a page asked for something outside this machine"
