"""`cursus claims`: what is missing or stale, cheapest first; a failure or the end of the time loses nothing."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from flows.cli.claims import (
    FAILURES,
    measure_claims,
    planned_claims,
    seconds_of,
    show_claims,
)
from flows.cli.planning_progress import planning_progress
from pipelines.errors import DataError, RecipeError
from pipelines.lineage.store import Store
from pipelines.recipe.load import Library
from tasks.environment import state_folder
from tasks.records.claims import RECORDS, record_claim
from tasks.records.outstanding import EstimatedClaim, Failure, OutstandingClaim, outstanding_claims
from tests.steps import RECIPES, ROOT, shipped
from tests.tasks.records.test_claims import RIGHT, answers, copy_recipes, measured

PLANNED = [
    EstimatedClaim(OutstandingClaim("ngram/orders", "no record"), {"a": 60.0}),
    EstimatedClaim(OutstandingClaim("crf/entities", "stale"), {"a": 60.0, "b": 120.0}),
    EstimatedClaim(OutstandingClaim("adapter/within_a_point", "no record"), {"b": 120.0, "c": 600.0}),
]


def test_a_failure_is_recorded_and_the_rest_is_measured(tmp_path: Path) -> None:
    done: list[str] = []

    def measure(root: Path, claim: OutstandingClaim, threads: int) -> None:
        assert (root, threads) == (tmp_path, 1)
        if claim.name == "crf/entities":
            raise DataError("the table is empty")
        if claim.name == "ngram/orders":
            raise SystemExit(1)  # after an unexpected error
        done.append(claim.name)

    failures = measure_claims(tmp_path, PLANNED, 1, None, measure)
    assert done == ["adapter/within_a_point"]
    assert [one.reason for one in failures] == ["an unexpected error, printed above", "the table is empty"]
    written = (state_folder(tmp_path) / FAILURES).read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["claim"] for line in written] == ["ngram/orders", "crf/entities"]


def test_a_stop_is_no_failure(tmp_path: Path) -> None:
    def stopped(root: Path, claim: OutstandingClaim, threads: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_claims(tmp_path, PLANNED, 1, None, stopped)


@pytest.mark.parametrize(("budget", "number"), [(None, 3), (0.0, 0), (50.0, 1), (100.0, 2), (101.0, 3)])
def test_no_claim_is_started_after_the_time(tmp_path: Path, budget: float | None, number: int) -> None:
    now, done = [0.0], []

    def measure(root: Path, claim: OutstandingClaim, threads: int) -> None:
        done.append(claim.name)
        now[0] += 50.0

    measure_claims(tmp_path, PLANNED, 1, budget, measure, lambda: now[0])
    assert done == [one.claim.name for one in PLANNED[:number]]


def test_the_plan_counts_shared_steps_once() -> None:
    output = Console(width=200, record=True)
    show_claims(output, PLANNED, [Failure(OutstandingClaim("gpt/known", "no record"), "there is no such dataset")])
    text = output.export_text()
    assert "claims: 3, about 13.0 minutes in total; steps that several share are counted once" in text
    cells = [line.split("│") for line in text.splitlines() if "adapter/" in line]
    assert [cell.strip() for cell in cells[0]][1:-1] == [
        *("adapter/within_a_point", "no record", "prepared", "1", "10.0", "13.0")
    ]
    assert "cannot be measured here  gpt/known: there is no such dataset" in text


def test_claims_over_data_that_is_not_prepared_are_planned_at_once(tmp_path: Path) -> None:
    shutil.copytree(RECIPES, tmp_path / "recipes")
    shutil.copy(ROOT / "params.yaml", tmp_path)
    outstanding = [
        OutstandingClaim("adapter/within_a_point", "no record"),
        OutstandingClaim("adapter/within_a_point", "stale", ("topics",)),
        OutstandingClaim("adapter/within_a_point", "no record", ("nowhere",)),
    ]
    before = set(tmp_path.rglob("*"))
    planned, failures = planned_claims(tmp_path, outstanding, 1)
    assert set(tmp_path.rglob("*")) == before, "nothing is prepared"
    assert {(one.claim.label, *one.preparations) for one in planned} == {
        ("adapter/within_a_point", "docstrings"),
        ("adapter/within_a_point topics", "topics"),
    }
    own, other = planned
    assert all(seconds > 0 for one in planned for seconds in (*one.steps.values(), *one.preparations.values()))
    assert own.seconds <= other.seconds and not own.steps.keys() & other.steps.keys(), "they read other tables"
    assert ["'nowhere', which is not in params.yaml" in one.reason for one in failures] == [True]
    output = Console(width=240, record=True)
    show_claims(output, planned, failures)
    text = output.export_text()
    assert text.count("not prepared: estimated") == 2
    spent = sum(seconds for one in planned for seconds in one.preparations.values())
    assert f"of these, {spent / 60:.1f} minutes prepare data (docstrings, topics)" in text


def test_planning_that_takes_longer_than_a_second_says_how_far_it_is() -> None:
    now, output = [0.0], Console(record=True, file=io.StringIO())
    with planning_progress(output, lambda: now[0]) as show:
        for number in range(16):
            now[0] = number / 2
            show(f"planned {number}")
    assert output.export_text().splitlines() == ["planned 2", "planned 12"]


@pytest.mark.parametrize(("text", "seconds"), [("40m", 2400), ("1.5h", 5400), ("90s", 90)])
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["40", "m", "-3m", "3 days", ""])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(RecipeError, match="is no duration: write 90s, 40m or 3h"):
        seconds_of(text)


def test_a_claim_is_outstanding_until_it_has_a_record_of_the_present_code(tmp_path: Path) -> None:
    copy_recipes(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    assert outstanding_claims(tmp_path, "adapter") == [OutstandingClaim("adapter/within_a_point", "no record")]
    every = {one.name for one in outstanding_claims(tmp_path, "crf/*")}
    assert every == {f"crf/{name}" for name in shipped("crf").claims}
    rows = {one: answers(right) for one, right in RIGHT.items()}
    recipe, store = Library(tmp_path / "recipes").load("adapter"), Store(tmp_path / "store")
    record_claim(tmp_path, measured(tmp_path, store, recipe, "within_a_point", rows))
    assert outstanding_claims(tmp_path, "adapter") == []
    path = tmp_path / "recipes" / "adapter.yaml"
    written = path.read_text(encoding="utf-8")
    path.write_text(written.replace("adapter: {like: plain,", "adapter: {like: plain, dropout: 0.3,"), encoding="utf-8")
    assert outstanding_claims(tmp_path, "adapter") == [OutstandingClaim("adapter/within_a_point", "stale")]
    path.write_text(written, encoding="utf-8")
    (record,) = (tmp_path / RECORDS).glob("*.json")
    document = json.loads(record.read_text(encoding="utf-8"))
    del document["definitions"]
    record.write_text(json.dumps({**document, "on": "topics"}), encoding="utf-8")
    own, other = outstanding_claims(tmp_path, "adapter/within*")
    assert own == OutstandingClaim("adapter/within_a_point", "no record")
    assert (other.data, other.label) == (("topics",), "adapter/within_a_point topics")
