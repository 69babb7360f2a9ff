"""An interrupted stage, run again, ends in the very weights and the very metrics of an uninterrupted one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipelines.errors import RecipeError, StageError
from pipelines.lineage.results import CHECKPOINTS, METRICS, RESULT, Result
from pipelines.lineage.store import SCRATCH
from pipelines.recipe.job import Job
from tasks.launchers import LauncherSession
from tasks.launchers.local import LocalLauncher
from tests.forked_ranks import ForkedSession
from tests.pipelines.training.conftest import Trained
from tests.steps import ROOT

LAUNCH = """
import sys
from pathlib import Path
from pipelines.recipe.job import Job
from tasks.launchers.local import LocalLauncher

class Silent:
    def progressed(self, job, lines): print("progressed", flush=True)
    def finished(self, job, result): print("finished", flush=True)

job = Job.model_validate_json(Path(sys.argv[1]).read_text())
with LocalLauncher().open(Path.cwd(), Path(sys.argv[2])) as launcher:
    launcher.run(job, Silent())
"""


class Killer:
    """Kills the training process once it has told of optimizer step `at`; None lets it live."""

    def __init__(self, at: int | None, session: LauncherSession) -> None:
        self.at, self.session, self.results = at, session, list[Result]()

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        if (
            self.at is not None
            and lines[-1]["step"] >= self.at
            and any((job.out / SCRATCH / CHECKPOINTS).glob("step-*"))
        ):
            self.process().kill()
            self.at = None

    def finished(self, job: Job, result: Result) -> None:
        self.results.append(result)

    def process(self) -> psutil.Process:
        (process,) = self.session.ranks() if isinstance(self.session, ForkedSession) else workers(os.getpid())
        return process


def workers(parent: int) -> list[psutil.Process]:
    """The training processes that `parent` started."""
    found = []
    for child in psutil.Process(parent).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # one that has just ended, or waits to be collected
            if "pipelines.training.ranks.worker" in child.cmdline():
                found.append(child)
    return found


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LauncherSession]:
    """One for all jobs, as in an execution: a child that was not killed serves the next."""
    with LocalLauncher().open(ROOT, tmp_path_factory.mktemp("launcher") / "log") as launching:
        yield launching


@pytest.mark.parametrize(("stage", "moments"), [("general", (30, 120)), ("classify", (20, 62))])
def test_killed_twice_it_ends_as_if_never(
    stage: str,
    moments: tuple[int, ...],
    trained: Trained,
    launcher: LauncherSession,
    forked: ForkedSession,
    tmp_path: Path,
) -> None:
    """The second time it is a worker of the launcher that dies, and another that ends the job."""
    job = trained.job(stage, tmp_path / "out")
    for session, moment in zip((forked, launcher), moments, strict=True):
        with pytest.raises(StageError, match=f"stage {stage} ended without a result"):
            session.run(job, Killer(moment, session))
        assert not (job.out / RESULT).exists()
    last = Killer(None, launcher)
    launcher.run(job, last)
    whole = trained.folder(stage)
    assert last.results[0].resumed_from_step is not None and last.results[0].resumed_from_step >= moments[-1] - 9
    assert (job.out / METRICS).read_text() == (whole / METRICS).read_text()
    assert (job.out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert (job.out / "tokenizer.json").read_bytes() == (whole / "tokenizer.json").read_bytes()
    uninterrupted = Result.model_validate_json((whole / RESULT).read_bytes())
    assert last.results[0].model_copy(update={"resumed_from_step": None}) == uninterrupted


class Terminator(Killer):
    """Asks the training process to end, as a scheduler does before it takes a machine away."""

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        if self.at is not None and lines[-1]["step"] >= self.at:
            self.process().terminate()
            self.at = None


def damaged(path: Path, how: str) -> None:
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    path.write_bytes(flipped if how == "a flipped bit" else content[:middle])


@pytest.fixture(scope="module")
def asked_twice(trained: Trained, forked: ForkedSession, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job that writes no checkpoint of its own accord and was asked to end, twice."""
    root = tmp_path_factory.mktemp("asked-twice")
    job = trained.job("general", root / "out")
    never = job.model_copy(update={"runtime": job.runtime.model_copy(update={"checkpoint_every": 10**6})})
    for moment in (14, 40):
        with pytest.raises(StageError, match="stage general ended without a result"):
            forked.run(never, Terminator(moment, forked))
    return never


@pytest.mark.parametrize("how", ["a flipped bit", "cut short"])
def test_asked_to_end_it_leaves_a_checkpoint_and_a_damaged_one_is_passed_over(
    how: str, asked_twice: Job, trained: Trained, forked: ForkedSession, tmp_path: Path
) -> None:
    job = asked_twice.model_copy(update={"out": tmp_path / "out"})
    shutil.copytree(asked_twice.out, job.out)
    kept = sorted((job.out / SCRATCH / CHECKPOINTS).iterdir())
    steps = [int(path.name[5:14]) for path in kept]
    assert len(steps) == 2 and steps[0] >= 14 and steps[1] >= 40, "one for each time it was asked"
    damaged(kept[-1], how)
    last = Killer(None, forked)
    forked.run(job, last)
    (result,) = last.results
    assert result.resumed_from_step == steps[0]
    assert result.passed_over == (f"the checkpoint of step {steps[1]} is damaged",)
    whole = trained.folder("general")
    assert (job.out / METRICS).read_text() == (whole / METRICS).read_text()
    assert (job.out / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()


def test_the_fine_tuning_of_these_tests_really_stops_early(trained: Trained) -> None:
    result = Result.model_validate_json((trained.folder("classify") / RESULT).read_bytes())
    assert 70 < result.steps < 360, "choose moments, patience and epochs such that it stops early, after the last kill"


def test_metrics_have_no_gap_and_no_repeat(trained: Trained) -> None:
    lines = [json.loads(line) for line in (trained.folder("classify") / METRICS).read_text().splitlines()]
    validations = [line["step"] for line in lines if "validation/accuracy" in line]
    assert validations == [*range(6, validations[-1] + 1, 6)]
    training = [line["step"] for line in lines if "train/loss" in line]
    assert training == [*range(7, training[-1] + 1, 7)]
    assert all(line["tokens"] > 0 for line in lines)


def test_a_users_mistake_keeps_its_class_on_its_way_to_the_caller(
    trained: Trained, launcher: LauncherSession, tmp_path: Path
) -> None:
    job = trained.job("classify", tmp_path / "out")
    assert job.start is not None
    bare = tmp_path / "bare"
    bare.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (bare / name).write_bytes((job.start / name).read_bytes())
    broken = job.model_copy(update={"start": bare})
    with pytest.raises(RecipeError, match=r"stage classify: .*no model.safetensors; only safetensors are read"):
        launcher.run(broken, Killer(None, launcher))
    # the same launcher computes the next job
    after = Killer(None, launcher)
    launcher.run(trained.job("small", tmp_path / "small"), after)
    assert len(after.results) == 1


def test_the_worker_ends_with_its_launcher(trained: Trained, tmp_path: Path) -> None:
    job = trained.job("general", tmp_path / "out")
    order = tmp_path / "job.json"
    order.write_text(job.model_dump_json())
    command = [sys.executable, "-c", LAUNCH, str(order), str(tmp_path / "log")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "progressed\n"
        (worker,) = workers(parent.pid)
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
    assert not (job.out / RESULT).exists()
