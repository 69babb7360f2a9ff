"""docs/reliability.md says what its records say; a campaign that was killed goes on."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks.faults import page, records
from benchmarks.faults.attempt import Ending
from benchmarks.faults.code import RECIPES
from benchmarks.faults.kinds import kills, kinds
from benchmarks.faults.records import Record
from pipelines.recipe.load import Library
from tasks.servers import prefect_application


def record(number: int = 0, wrong: tuple[str, ...] = (), **other: Any) -> Record:
    values = {
        "kind": "kill_flow", "number": number, "struck": "after 20% of an undisturbed run's work", "begun": True,
        "finished": 2, "ended": "killed", "runs": 1, "recovery_seconds": 21.5, "lost": [], "wrong": list(wrong),
        "hangs": [], "unclear": [], "fixed": [], "date": "2026-01-01T00:00:00+00:00", "commit": "abc", "code": "c0de",
        "machine": "two cores",
    }  # fmt: skip
    return Record.model_validate({**values, **other})


def test_the_page_is_what_its_records_give() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.render(kinds()), "run: python -m benchmarks.faults --page"


def test_a_case_that_went_wrong_is_counted_and_told(tmp_path: Path) -> None:
    records.write("kill_flow", [record(), record(number=1, wrong=("classify@0: is missing",))], tmp_path)
    told = page.render(kinds(), tmp_path)
    assert "| **all** | | **2** | **0** | **0** | **0** | **1** | **0** | **0** | **0** | 22 s |" in told
    assert "`kill_flow` 1, after 20% of an undisturbed run's work: wrong: classify@0: is missing" in told


def test_cases_that_could_lose_nothing_and_fixed_ones_are_columns_of_their_own(tmp_path: Path) -> None:
    failed = record(number=2, wrong=("classify@0: is missing",))
    again = record(number=2, fixed=failed.history, commit="def", code="c0de2")
    early = [record(begun=False, finished=0), record(number=1, finished=0)]
    records.write("kill_flow", [*early, again], tmp_path)
    told = page.render(kinds(), tmp_path)
    assert "| **all** | | **3** | **1** | **2** | **0** | **0** | **0** | **0** | **1** | 22 s |" in told
    assert "- `kill_flow` 2: 2026-01-01, abc: wrong: classify@0: is missing" in told
    assert "code `c0de2` (commit def): 1 cases" in told
    assert again.history == failed.history and record(number=2).history == []


def test_processes_that_are_killed_are_named_as_they_are_started() -> None:
    for module in (kills.FLOW, kills.COMMAND, kills.TRAINING, kills.RANK):
        assert find_spec(module.strip()) is not None, module
    assert kills.SERVER in prefect_application.command("127.0.0.1", 0)


def test_a_line_that_was_not_finished_counts_for_nothing(tmp_path: Path) -> None:
    records.write("kill_flow", [record(), record(number=1)], tmp_path)
    path = tmp_path / "kill_flow.jsonl"
    path.write_text(path.read_text()[:-20])
    assert [one.number for one in records.read("kill_flow", tmp_path)] == [0]


def test_the_issue_s_numbers_are_asked_for() -> None:
    known = kinds()
    assert all(fault.cases >= 10 for fault in known.values()) and sum(fault.cases for fault in known.values()) >= 300
    wanted = {"kill_": 100, "disk_full": 20, "damaged_": 20, "clock_jump": 10}
    for start, least in wanted.items():
        assert sum(fault.cases for name, fault in known.items() if name.startswith(start)) >= least
    assert sum(known[name].cases for name in ("prefect_stopped", "mlflow_locked", "mlflow_killed")) >= 20


def test_every_kind_disturbs_a_recipe_that_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RECIPES, tmp_path / "recipes")
    monkeypatch.chdir(tmp_path)
    library = Library(Path("recipes"))
    assert {fault.recipe for fault in kinds().values()} == set(library.names())
    assert all(library.load(name).stages for name in library.names())


@pytest.mark.parametrize(
    ("status", "said", "clear"),
    [
        (0, "", True),
        (2, "error: the disk is full; free some space, then run again\n", True),
        (130, "stopped; finished stages are kept, and the same command continues from the last checkpoint\n", True),
        (2, "error: no\n", False),
        (1, "Traceback (most recent call last):\n…\nOSError: [Errno 28]\n", False),
        (2, "Traceback (most recent call last):\n…\nerror: the disk is full; free some space, then run again\n", False),
        (247, "", False),
    ],
)
def test_only_success_and_one_sentence_are_clear(status: int, said: str, clear: bool) -> None:
    assert Ending(status, said, 1.0).clear is clear
