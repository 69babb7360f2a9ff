"""A process is killed after each of the transactions in which it records something: the next one completes that."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from pipelines.lineage.store import Store
from tasks.environment import tracking_uri
from tasks.tracking.backfill import TrackingBackfill
from tasks.tracking.journal import Entry, ExecutionBegan, MetricsMeasured, StepBegan, StepCached, StepFinished, batches
from tasks.tracking.recorder import Recorder
from tasks.tracking.tracked_values import TrackedStep
from tasks.tracking.writer import MLflowWriter
from tests.tasks.conftest import Builder

LINES = [{"step": step, "tokens": 100 * step, "train/loss": 9.0 / step} for step in (1, 2)]


class KilledError(Exception):
    """In place of SIGKILL: what is not committed is rolled back."""


@contextmanager
def killed_before_commit(number: int) -> Iterator[list[int]]:
    """End the block at its commit `number`, from 1; what it yields has an element for each commit."""
    commits: list[int] = []

    def count(_: object) -> None:
        commits.append(len(commits) + 1)
        if len(commits) == number:
            raise KilledError

    event.listen(Engine, "commit", count)
    try:
        yield commits
    except Exception:  # MLflow raises one of its own in its place
        if len(commits) < number:
            raise
    finally:
        event.remove(Engine, "commit", count)


def began(execution: str) -> ExecutionBegan:
    return ExecutionBegan(execution=execution, recipe="bert", dataset="docs", plan=[])


def write(root: Path, entries: list[Entry]) -> None:
    """What the process of a run does, as far as it comes."""
    writer = MLflowWriter(Recorder(root))
    for batch in batches(entries):
        writer.write(batch)


def killed_everywhere(
    root: Path, monkeypatch: pytest.MonkeyPatch, disturbed: Callable[[Path], None], again: Callable[[Path], None]
) -> list[dict[str, str]]:
    """Status of every run by its name, for each commit at which `disturbed` is killed before `again`, in copies of
    `root`."""
    found: list[dict[str, str]] = []
    number = 1
    while True:
        copy = root.with_name(f"killed{number}")
        shutil.copytree(root, copy)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri(copy))
        with killed_before_commit(number) as commits:
            disturbed(copy)
        again(copy)
        recorder = Recorder(copy)
        runs = recorder.client.search_runs(recorder.experiments())
        found.append({str(run.info.run_name): run.info.status for run in runs})
        if len(commits) < number:
            return found
        number += 1


@pytest.mark.timeout(300)
def test_a_cached_step_that_was_nearly_linked(root: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    general = builder.step("general", "pretrain", metrics={"validation/loss": 4.2})
    folder = general.folder.resolve()
    step = StepBegan(step=TrackedStep.of(general.provenance))
    first = [began("e1"), step, StepFinished(fingerprint=general.fingerprint, folder=folder)]
    MLflowWriter(Recorder(root)).write_journal(first)
    second: list[Entry] = [began("e2"), StepCached(folder=folder, name=None)]
    found = killed_everywhere(
        root,
        monkeypatch,
        lambda copy: write(copy, second),
        lambda copy: MLflowWriter(Recorder(copy)).write_journal(second),
    )
    assert len(found) > 5
    ended = {"bert e1": "KILLED", "bert e2": "KILLED"}
    ended |= dict.fromkeys(("general · regime e1", "general · regime e2"), "FINISHED")
    assert [each for each in found if each != ended] == []


@pytest.mark.timeout(300)
def test_a_step_that_was_nearly_logged_from_its_record(
    root: Path, builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    general = builder.step("general", "pretrain", metrics={"validation/loss": 4.2})
    entries = [
        began("e1"),
        StepBegan(step=TrackedStep.of(general.provenance)),
        MetricsMeasured(fingerprint=general.fingerprint, lines=LINES),
    ]
    MLflowWriter(Recorder(root)).write_journal(entries)

    def record(copy: Path) -> None:
        TrackingBackfill(Recorder(copy), Store(builder.store.root)).record_missing()

    found = killed_everywhere(root, monkeypatch, record, record)
    assert len(found) > 5
    assert [each for each in found if each != {"bert e1": "KILLED", "general · regime e1": "FINISHED"}] == []
