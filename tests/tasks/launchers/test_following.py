"""What is new in a job's metrics is told once, also when it has rewound."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pipelines.lineage.results import METRICS, Result
from pipelines.recipe.job import Job
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
