"""What a person sees of two executions in MLflow: the comparison first, charts, links that open; in a real browser.

The executions are recorded as flows record them; their models are tiny and untrained. Screenshots of every step lie in
pytest's temporary folder, under `screenshots`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipelines.lineage.store import Store
from tasks.records.comparisons import find_execution
from tasks.records.execution_parameters import KEYS
from tasks.records.headlines import headline_of
from tasks.servers.services import Services
from tasks.tracking.executions import Tracker
from tasks.tracking.recorder import Recorder
from tasks.tracking.tracked_values import TrackedStep
from tests.tasks.conftest import TEXTS, Builder
from tests.tasks.records.test_comparisons import TRUTH, answers, execution

from .conftest import CHROMIUM, NO_CHROMIUM, ask, authorization, status

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
LINES = [
    {"step": step, "tokens": 1000 * step, "train/loss": 5.0 / step, "validation/loss": 6.0 / step} for step in (1, 2, 3)
]
STAGE = "tune"
"""Not `classify`, which other tests of this checkout look for."""
WRONG = {"aaaa": 50, "bbbb": 20}
"""Execution → the test examples that its model gets wrong."""


@pytest.fixture(scope="module")
def executions(project: Path, first: object, classifier_folder: Path) -> list[str]:
    """Two executions of `regime` on the dataset `docs`, in the store, in reports/ and in MLflow; their ids."""
    builder = Builder(project, classifier_folder)
    test = builder.table("test", TRUTH)
    data = {"train": builder.table("train", TEXTS), "test": test}
    ids = []
    for name, wrong in WRONG.items():
        requested = {"dataset": "docs", "recipe": "regime", "variants": f"variant-{name}"}
        parameters = {**dict.fromkeys(KEYS, "none"), **requested}
        made = execution(builder, name, [answers(wrong, 0), answers(wrong + 2, 1)], test, STAGE, parameters=parameters)
        done = find_execution(project, builder.store, name)
        tracker = Tracker(project)
        nothing = Store(project / "empty")
        tracker.begin_execution(done.id, "regime", "docs", [], nothing, parameters=parameters, data=data)
        for artifact in made:
            tracker.begin_step(TrackedStep.of(artifact.provenance))
            tracker.log_metrics(artifact.fingerprint, LINES)
            tracker.finish_step(artifact)
        page = project / "reports" / done.id / "report.html"
        page.write_text(f"<!doctype html><h1>Report of {name}</h1><script>document.body.innerHTML = ''</script>")
        tracker.log_report(page)
        headline = headline_of(builder.store, done.steps)
        tracker.finish_execution("FINISHED", headline.metrics, headline.tags)
        assert tracker.failure is None
        ids.append(done.id)
    return ids


def experiment(services: Services) -> str:
    """The id of the experiment `docs`."""
    known = ask(f"{services.mlflow_url}/api/2.0/mlflow/experiments/get-by-name?experiment_name=docs")
    return str(known["experiment"]["experiment_id"])


def rows(page: Page) -> list[str]:
    """What the table of runs shows, row by row, once it shows any."""
    page.locator("[role=row] a[href*='/runs/']").first.wait_for()
    return [text for text in page.locator("[role=row]").all_inner_texts() if text.strip()]


@pytest.mark.timeout(400)
def test_an_experiment_opens_on_the_comparison_of_its_executions(
    page: Page, servers: Services, executions: list[str], screenshots: Path, strangers: list[str]
) -> None:
    page.set_viewport_size({"width": 2200, "height": 700})  # columns out of sight are not in the page
    page.goto(f"{servers.mlflow_url}/#/experiments/{experiment(servers)}")
    shown = " ".join(rows(page))
    page.wait_for_timeout(1000)
    page.screenshot(path=screenshots / "1-first-view.png")
    for name in executions:
        assert f"regime variant-{name[-4:]} {name}" in shown
    assert "tune@0" not in shown, "stages are in a view of their own"
    heads = " ".join(page.locator("[role=columnheader]").all_inner_texts())
    for column in ("best/accuracy", "best/accuracy_low", "best/accuracy_high", "served/accuracy", "variants"):
        assert column in heads, heads
    assert page.locator("[data-assistant-ui]:visible").count() == 0
    assert page.evaluate("localStorage['mlflow.workflowType_v1']") == '"machine_learning"'
    assert strangers == []


def open_view(page: Page, name: str) -> None:
    """Views ▸ `name`."""
    page.get_by_test_id("saved-views-trigger").click()
    page.get_by_text(name, exact=True).last.click()


def drawn(page: Page, title: str) -> list[dict[str, Any]]:
    """The traces of the chart with this title, once they have points."""
    page.get_by_text(title).first.wait_for()
    of_first = "[...document.querySelectorAll('.js-plotly-plot')].map(plot => plot.data || [])[0]"
    page.wait_for_function(f"({of_first} || []).some(trace => (trace.x || []).length > 0)")
    return list(page.evaluate(f"{of_first}.map(trace => ({{x: [...(trace.x || [])], y: [...(trace.y || [])]}}))"))


@pytest.mark.timeout(400)
def test_saved_views_show_stages_and_charts_of_score_against_cost(
    page: Page, servers: Services, executions: list[str], screenshots: Path
) -> None:
    page.set_viewport_size({"width": 2200, "height": 900})
    address = f"{servers.mlflow_url}/#/experiments/{experiment(servers)}/runs"
    page.goto(address)
    rows(page)
    open_view(page, "Stages")
    page.get_by_role("link", name="tune@0 · regime aaaa").first.wait_for()
    page.screenshot(path=screenshots / "2-stages.png")
    heads = " ".join(page.locator("[role=columnheader]").all_inner_texts())
    assert all(column in heads for column in ("stage", "objective", "validation/loss", "final/tokens")), heads
    assert not any(f"variant-{name[-4:]} {name}" in " ".join(rows(page)) for name in executions)
    page.goto(f"{address}?viewStateShareKey=stages&compareRunsMode=CHART")
    (curves, *_) = drawn(page, "train/loss")
    assert sorted(curves["x"]) == [1000, 2000, 3000], "over tokens"
    page.screenshot(path=screenshots / "3-curves.png")
    page.goto(f"{address}?viewStateShareKey=score-against-cost&compareRunsMode=CHART")
    points = drawn(page, "cost/seconds vs. best/accuracy")
    scores = sorted((x, y) for one in points for x, y in zip(one["x"], one["y"], strict=True))
    assert scores == [(285, pytest.approx(1 - wrong / 120)) for wrong in (51, 21)]
    page.screenshot(path=screenshots / "4-score-against-cost.png")


@pytest.mark.timeout(400)
def test_compare_prints_and_opens_the_same_side_by_side(
    page: Page, servers: Services, executions: list[str], project: Path, screenshots: Path, tmp_path: Path
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho \"$1\" > '{tmp_path / 'opened'}'\n")
    browser.chmod(0o755)
    command = [sys.executable, "-m", "flows.cli.app", "compare", *WRONG, "--open"]
    environment = {**os.environ, "BROWSER": str(browser), "COLUMNS": "160"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "variant-aaaa" in done.stdout and "better" in done.stdout, done.stdout
    (address,) = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("mlflow ")]
    assert (tmp_path / "opened").read_text().strip() == address
    assert address.startswith(servers.mlflow_url), "the page of the running server"
    page.goto(address)
    for name in executions:
        page.get_by_text(f"regime variant-{name[-4:]} {name}").first.wait_for()
    page.locator(".js-plotly-plot").first.wait_for()  # of the parameter and the metric that differ
    shown = page.locator("body").inner_text()
    page.screenshot(path=screenshots / "5-compared.png")
    for word in ("variants", "variant-aaaa", "variant-bbbb", "best/accuracy", "cost/seconds"):
        assert word in shown, word


@pytest.mark.timeout(400)
def test_the_report_opens_from_the_run(
    page: Page, servers: Services, executions: list[str], screenshots: Path, strangers: list[str]
) -> None:
    page.goto(f"{servers.mlflow_url}/#/experiments/{experiment(servers)}")
    page.get_by_role("link", name=executions[0]).first.click()
    link = page.get_by_role("link", name="Report of this execution")
    link.wait_for()
    page.screenshot(path=screenshots / "6-run.png", full_page=True)
    assert page.locator("a[href^='file:']").count() == 0
    page.goto(str(link.evaluate("link => link.href")))
    page.get_by_role("heading", name="Report of aaaa").wait_for()  # its script did not run
    page.screenshot(path=screenshots / "7-report.png")
    assert page.url == f"{servers.mlflow_url}/reports/{executions[0]}/report.html"
    assert page.evaluate("window.origin") == "null", "a page of ours may not use MLflow's API"
    assert strangers == []


@pytest.mark.timeout(400)
def test_a_model_links_to_those_it_was_made_from(
    page: Page,
    servers: Services,
    executions: list[str],
    project: Path,
    classifier_folder: Path,
    screenshots: Path,
) -> None:
    builder, recorder, docs = Builder(project, classifier_folder), Recorder(project), experiment(servers)
    base = builder.step("base", "pretrain")
    student = builder.step("student", "compress", parents={"start": base.fingerprint})
    for one in (base, student):
        recorder.record(one.provenance, one.folder, docs)
    page.goto(f"{servers.mlflow_url}/#/experiments/{docs}/models/{recorder.model_of(student.fingerprint)}")
    link = page.get_by_role("link", name="base", exact=True)
    link.wait_for()
    page.screenshot(path=screenshots / "8-model.png")
    page.goto(str(link.evaluate("link => link.href")))
    page.get_by_text(str(recorder.model_of(base.fingerprint))).first.wait_for()
    page.get_by_role("heading", name="base").first.wait_for()


def test_reports_need_the_account_and_nothing_else_is_served(servers: Services, executions: list[str]) -> None:
    report = f"{servers.mlflow_url}/reports/{executions[0]}/report.html"
    assert status(report)[0] == HTTPStatus.UNAUTHORIZED
    assert status(report, **authorization())[0] == HTTPStatus.OK
    for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
        assert status(report, **authorization(), **headers)[0] == HTTPStatus.FORBIDDEN
    for escape in ("..%2f.cursus%2faccount", "../params.yaml", "%2e%2e/params.yaml", "..%5cparams.yaml"):
        assert status(f"{servers.mlflow_url}/reports/{escape}", **authorization())[0] == HTTPStatus.NOT_FOUND
    assistant = f"{servers.mlflow_url}/ajax-api/3.0/mlflow/assistant/config"
    assert status(assistant, **authorization())[0] == HTTPStatus.NOT_FOUND
