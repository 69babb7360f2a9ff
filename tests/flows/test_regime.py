"""The whole regime on a small dataset, in a checkout of its own: computed once, cached, recomputed where it changed."""

from __future__ import annotations

import re
import resource
import shutil
import sqlite3
from pathlib import Path

import pytest

from pipelines.lineage.store import Store
from tasks.records.execution_parameters import KEYS
from tests.flows.conftest import Cursus, FirstRun, command_line, users_shell
from tests.tiny_regime import BRIEF

STATES = ("cached", "to compute")


@pytest.fixture(scope="module")
def checkout(first: FirstRun) -> Path:
    """That of the first run."""
    return first.checkout


@pytest.fixture(scope="module")
def cursus(checkout: Path, server: dict[str, str]) -> Cursus:
    return command_line(checkout, users_shell(checkout) | server)


def states(table: str) -> dict[str, str]:
    """Step → what the printed plan says of it."""
    rows = [[cell.strip() for cell in re.split("[│┃|]", line)] for line in table.splitlines()]
    return {row[1]: state for row in rows for state in STATES if len(row) > 4 and state in row}


def test_the_plan_is_told_before_anything_is_computed(first: FirstRun) -> None:
    done = first.planned
    assert done.returncode == 0, done.stderr
    told = states(done.stdout)
    assert {"general", "domain", "task", "classify@0", "small", "int8", "report"} <= set(told)
    assert set(told.values()) == {"to compute"} and f"{len(told)} of {len(told)} steps to compute" in done.stdout
    assert not first.steps_before and "torch" not in done.stderr


def test_the_first_run_computes_registers_and_reports(first: FirstRun, cursus: Cursus, checkout: Path) -> None:
    assert "registered small-text-classification version 1" in first.done.stdout
    (warning,) = [line for line in first.done.stdout.splitlines() if line.startswith("warning  int8: accuracy ")]
    assert "is not surely above the baseline " in warning and "registered as @candidate" in warning, (
        "it has read next to nothing"
    )
    store = Store(checkout / "data" / "store")
    assert all(store.get(record.fingerprint) for record in first.made)
    assert {record.kind for record in first.made} == {
        "pretrain",
        "adapt_domain",
        "adapt_task",
        "finetune",
        "compress",
        "evaluate",
    }
    (report,) = (checkout / "reports").glob("*/report.html")
    assert str(report) in first.done.stdout
    with sqlite3.connect(checkout / ".cursus" / "mlflow.db") as database:
        names = [name for (name,) in database.execute("select name from registered_models")]
        tags = database.execute("select value from model_version_tags where key = 'cursus.warning'").fetchall()
        of_execution = "join tags using (run_uuid) where tags.key = 'cursus.kind' and tags.value = 'execution'"
        params = dict(database.execute(f"select params.key, params.value from params {of_execution}"))
        metrics = dict(database.execute(f"select m.key, m.value from latest_metrics m {of_execution}"))
    database.close()
    assert tuple(sorted(params)) == tuple(sorted(KEYS)) and params["dataset"] == "small" and params["smoke"] == "false"
    assert params["budgets"].startswith("general, domain, task: ") and params["budgets"].count(" tokens") == 1
    for side in ("best", "served", "baseline"):
        assert metrics[f"{side}/accuracy_low"] <= metrics[f"{side}/accuracy"] <= metrics[f"{side}/accuracy_high"]
    assert all(metrics[f"cost/{what}"] > 0 for what in ("seconds", "tokens", "bytes"))
    assert first.statuses["FINISHED"] == len(first.made) + 1, "one run for the execution, one for each step"
    assert set(first.statuses) <= {"FINISHED", "KILLED"}, "what another test stopped is told as what it is"
    assert "small-text-classification" in names
    assert [value for (value,) in tags] == [warning.removeprefix("warning  ").partition("; it is registered")[0]]
    told = cursus("predict", "--json", "Send a message to a list of addresses.")
    assert told.returncode == 0 and '"label"' in told.stdout
    assert "model    int8 of the latest run on small; no model is champion " in told.stderr


def registered(checkout: Path) -> list[tuple[str, str, str]]:
    """Name, alias and version of every alias of MLflow's registry."""
    with sqlite3.connect(checkout / ".cursus" / "mlflow.db") as database:
        found = database.execute("select name, alias, version from registered_model_aliases order by 1, 2").fetchall()
    database.close()
    return found


def test_a_smoke_run_harms_nothing(first: FirstRun, cursus: Cursus, checkout: Path) -> None:
    (checkout / "recipes" / "brief.yaml").write_text(BRIEF)
    before, pages = registered(checkout), set((checkout / "reports").glob("*/report.html"))
    done = cursus("--language", "zh", "run", "brief", "--smoke", "--threads", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "已注册" not in done.stdout and "冒烟     不注册模型" in done.stdout
    assert re.search(r"^general .*M 词元 .*k/秒", done.stderr, re.MULTILINE), "the flow's process prints Chinese too"
    assert registered(checkout) == before and before, "neither a version nor an alias"
    told = cursus("predict", "--json", "Send a message to a list of addresses.")
    assert "model    int8 of the latest run on small" in told.stderr, "not the smoke run's classify"
    assert cursus("lineage").stdout.startswith("model    int8 of the latest run on small")

    (page,) = set((checkout / "reports").glob("*/report.html")) - pages
    assert "Smoke run." in page.read_text(encoding="utf-8")
    assert "Smoke run." not in next(iter(pages)).read_text(encoding="utf-8")
    index = (checkout / "reports" / "index.html").read_text(encoding="utf-8")
    assert index.index("<h2>Smoke runs</h2>") < index.index(page.parent.name)
    with sqlite3.connect(checkout / ".cursus" / "mlflow.db") as database:
        query = """select e.name, count(*) from runs r join experiments e using (experiment_id)
            where r.lifecycle_stage = 'active' group by 1"""
        runs = dict(database.execute(query).fetchall())
    database.close()
    assert runs["small (smoke runs)"] >= 4 and runs["small"] == len(first.made) + 1
    shutil.rmtree(page.parent)  # other tests count reports


def test_the_second_run_knows_everything(first: FirstRun, cursus: Cursus) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = cursus("run")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert done.returncode == 0 and "everything is in the store" in done.stdout
    assert "imported:\n" in done.stderr, "a cached run is told without torch, prefect and mlflow"
    assert seconds < 20, "of a processor: the machine may do other things"
    table = first.done.stdout.partition("test scores")[2].partition("report")[0]
    assert table and table in done.stdout, "the scores are those of the first run"


def test_a_run_that_was_killed_after_its_last_stage_is_carried_to_its_end(
    first: FirstRun, cursus: Cursus, checkout: Path
) -> None:
    shutil.rmtree(checkout / "reports")  # what is written last
    done = cursus("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "registered small-text-classification version 1" in done.stdout, "the model keeps the version it has"
    assert len(list((checkout / "reports").glob("*/report.html"))) == 1


def test_what_a_full_disk_kept_mlflow_from_being_told_is_told_by_the_next_run(
    first: FirstRun, cursus: Cursus, checkout: Path
) -> None:
    """Neither a journal nor what MLflow wrote: only the store, and a report that it is whole."""
    state = checkout / ".cursus"
    (report,) = (checkout / "reports").glob("*/report.html")
    (state / "executions" / f"{report.parent.name}.told").unlink()
    (state / "mlflow.db").unlink()
    done = cursus("run")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "registered small-text-classification version 1" in done.stdout
    assert "everything is in the store" in cursus("run").stdout


def test_a_new_rate_of_fine_tuning_leaves_pre_training_alone(first: FirstRun, cursus: Cursus, checkout: Path) -> None:
    recipe = checkout / "recipes" / "regime.yaml"
    text = recipe.read_text()
    head, stage, tail = text.partition("\n  classify:\n")
    rate = re.search(r"lr: ([\d.e-]+)", tail)
    assert stage and rate
    try:
        recipe.write_text(head + stage + tail.replace(rate[0], "lr: 1.23e-3", 1))
        told = states(cursus("run", "--dry-run").stdout)
    finally:
        recipe.write_text(text)
    assert {told["classify@0"], told["small"], told["int8"], told["report"]} == {"to compute"}
    assert {told["general"], told["domain"], told["task"]} == {"cached"}
