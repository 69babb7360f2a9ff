"""What is new in a job's metrics is told once, also when it has rewound."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pipelines.lineage.results import ACTIVITY, METRICS, SCRATCH, Result
from pipelines.recipe.job import Job
from pipelines.training.activity import Activity
from tasks.display.progress import EVERY_SECONDS, TerminalProgress
from tasks.launchers.following import Tail


class Heard:
    def __init__(self) -> None:
        self.steps = list[int]()

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        self.steps += [line["step"] for line in lines]

    def finished(self, job: Job, result: Result) -> None: ...


def lines(*steps: int) -> str:
    return "".join(json.dumps({"step": step}) + "\n" for step in steps)


def test_lines_are_told_once_and_unfinished_ones_later(tmp_path: Path) -> None:
    path, heard, tail = tmp_path / METRICS, Heard(), Tail(Job.model_construct(out=tmp_path))
    tail.report(heard)
    path.write_text(lines(1, 2) + '{"st')
    tail.report(heard)
    assert heard.steps == [1, 2]
    with path.open("a") as file:
        file.write('ep": 3}\n' + lines(4))
    for _ in range(2):
        tail.report(heard)
    assert heard.steps == [1, 2, 3, 4]


def test_what_a_resumed_job_logs_again_is_told_again(tmp_path: Path) -> None:
    path, heard, tail = tmp_path / METRICS, Heard(), Tail(Job.model_construct(out=tmp_path))
    path.write_text(lines(1, 2, 3, 4))
    tail.report(heard)
    aside = tmp_path / "aside"
    aside.write_text(lines(1, 2))
    os.replace(aside, path)
    tail.report(heard)
    with path.open("a") as file:
        file.write(lines(3, 4, 5))
    tail.report(heard)
    assert heard.steps == [1, 2, 3, 4, 3, 4, 5]
    path.unlink()
    tail.report(heard)
    path.write_text(lines(1))
    tail.report(heard)
    assert heard.steps[-1] == 1


class Watching(Heard):
    def __init__(self) -> None:
        super().__init__()
        self.doing = list[str]()

    def active(self, job: Job, line: str) -> None:
        self.doing.append(line)


def test_what_a_job_does_before_its_first_step_is_told_once(tmp_path: Path) -> None:
    watching, tail, activity = Watching(), Tail(Job.model_construct(out=tmp_path)), Activity(tmp_path)
    tail.report(watching)
    for line in ("encoding examples: 2,048 of 9,000", "encoding examples: 4,096 of 9,000"):
        activity(line)
        for _ in range(2):
            tail.report(watching)
            tail.report(Heard())
    assert watching.doing == ["encoding examples: 2,048 of 9,000", "encoding examples: 4,096 of 9,000"]
    assert [one.name for one in (tmp_path / SCRATCH).iterdir()] == [ACTIVITY]


def test_without_a_terminal_a_running_step_has_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with TerminalProgress() as progress:
        for second in range(4 * EVERY_SECONDS):
            now = 1000.0 + second
            progress.status("classify", f"encoding examples: {second}")
        progress.update("classify", {"tokens": 10**6, "train/loss": 2.5}, None, "accuracy")
        metrics = {"validation/accuracy": 0.5, "validation/sample": 10_000.0, "validation/examples": 50_000.0}
        progress.done("classify", Result(metrics=metrics), 5.0, "accuracy")
    printed = capsys.readouterr().err.splitlines()
    spoken = [line.split()[-1] for line in printed if "encoding" in line]
    assert spoken == [str(EVERY_SECONDS * number) for number in (1, 2, 3)]
    assert " ".join(printed[-2:]).endswith("accuracy 0.500  (on 50,000 examples; in each epoch on 10,000 of them)")
