"""Lines about steps of a dataset, from what DVC and the steps write."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipelines.corpora.steps import step
from tasks.datasets import dvc_process
from tasks.datasets.step_progress import StepProgress


def test_steps_are_named_and_say_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    now, lines = 100.0, list[str]()
    monkeypatch.setattr("time.monotonic", lambda: now)
    progress = StepProgress(lines.append)
    progress.silent()
    progress.read("Running stage 'clean@mine':\n")
    now = 110.0
    progress.silent()
    progress.read("> python -m pipelines.corpora.steps.clean mine\n")
    now = 117.0
    progress.read(f"{step.PROGRESS}3 of 40 parts\n")
    now = 127.0
    progress.silent()
    progress.read("Running stage 'split@mine':\n")
    progress.silent()
    assert lines == [
        "clean",
        "clean: 10 s",
        "clean: 17 s, 3 of 40 parts",
        "clean: 27 s, 3 of 40 parts",
        "split",
        "split: 0 s",
    ]


def test_silence_is_noticed_and_no_line_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dvc_process, "SILENT_SECONDS", 0.05)
    silences: list[int] = []
    script = "import time; print('a', flush=True); time.sleep(0.4); print('b'); print('c')"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        lines = list(dvc_process._lines(process.stdout, lambda: silences.append(1)))
    assert lines == ["a\n", "b\n", "c\n"] and len(silences) >= 3


def test_a_step_prints_at_most_one_line_in_a_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    report = step._PrintedProgress()
    for second in range(12):
        now = 100.0 + second
        report(f"{second} of 12 parts")
    assert capsys.readouterr().out == f"{step.PROGRESS}5 of 12 parts\n{step.PROGRESS}10 of 12 parts\n"
