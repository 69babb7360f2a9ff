"""A measurement that is interrupted goes on with the cases that it lacks, at the same commit only."""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness.benchmark import Setting
from benchmarks.harness.kept_cases import folder_of, kept
from benchmarks.harness.paced import Paces
from benchmarks.harness.record import Turn


def paces(seconds: float, failed: dict[str, str] | None = None) -> Paces:
    turn = Turn(units=10, seconds=seconds, cpu=seconds)
    return Paces({"cursus": (turn, turn)}, failed or {}, {"cursus": 1.5}, {"cursus": turn})


def test_a_finished_case_is_taken_over_and_one_that_failed_is_measured_again(tmp_path: Path) -> None:
    setting = Setting(quick=False, threads=1, work=tmp_path / "work", kept=tmp_path / "kept")
    assert kept(setting, "tiny, 128 tokens", lambda: paces(1)) == paces(1)
    assert kept(setting, "tiny, 128 tokens", lambda: paces(2)) == paces(1)
    assert kept(setting, "tiny, 512 tokens", lambda: paces(3, {"cursus": "killed"})).failed
    assert kept(setting, "tiny, 512 tokens", lambda: paces(4)) == paces(4)
    other = Setting(quick=True, threads=1, work=tmp_path / "work")
    assert kept(other, "tiny, 128 tokens", lambda: paces(5)) == paces(5), "a quick look keeps nothing"


def test_cases_are_kept_by_benchmark_and_commit_and_not_of_a_modified_tree() -> None:
    folders = {folder_of("masked_lm", "abc"), folder_of("masked_lm", "def"), folder_of("lines", "abc")}
    assert len(folders) == 3 and None not in folders
    assert folder_of("masked_lm", "abc+") is None
