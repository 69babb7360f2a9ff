"""What the campaign has found, each by itself."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.faults.judge import Snapshot
from benchmarks.faults.kinds.clock_jump import Clock, ClockJump
from benchmarks.faults.kinds.disk_full import DiskFull, fill, mount
from flows.process.execute import execute
from flows.process.recoverable import recoverable
from pipelines.errors import DataError, StageError, StoreError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS, RESULT, SCRATCH, Result
from pipelines.lineage.store import Store
from pipelines.recipe.job import Job
from pipelines.recipe.schema import Stage
from pipelines.training.ranks.failure import read_failure, record_failure, reserve_space
from tasks.launchers import LauncherSession
from tasks.launchers.following import Attempt
from tests.pipelines.training.small_recipe import RECIPE
from tests.steps import library_of, plan_of


class Nowhere(LauncherSession):
    """A launcher that must not start anything."""

    def _begin(self, job: Job, order: Path) -> Attempt:
        raise AssertionError("a job that has its result is not started again")


class Heard:
    def __init__(self) -> None:
        self.lines = list[dict[str, Any]]()
        self.results = list[Result]()

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        self.lines += lines

    def finished(self, job: Job, result: Result) -> None:
        self.results.append(result)


def test_a_result_that_waits_to_be_published_starts_no_process(tmp_path: Path) -> None:
    # a worker that was told to read the order of a job whose folder had been published died, and the next stage with it
    job = Job.model_construct(out=tmp_path, stage=Stage.model_construct(), stage_name="general")
    (tmp_path / SCRATCH).mkdir()
    (tmp_path / METRICS).write_text('{"step": 1}\n')
    (tmp_path / RESULT).write_text(Result(steps=7).model_dump_json())
    heard = Heard()
    with Nowhere(tmp_path, tmp_path / "log") as launcher:
        launcher.run(job, heard)
    assert [one.steps for one in heard.results] == [7] and heard.lines == [{"step": 1}]


def test_a_full_disk_and_a_dead_server_are_told_in_one_sentence(tmp_path: Path) -> None:
    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "/somewhere/prefect.db")
        except OSError as first:
            raise RuntimeError("in words of its own") from first
    except RuntimeError as error:
        told = recoverable(error, tmp_path)
    assert isinstance(told, StoreError) and "/somewhere/prefect.db: no space left" in str(told)
    gone = recoverable(httpx.ConnectError("All connection attempts failed"), tmp_path)
    assert gone is not None and "run the same command again" in str(gone)
    assert recoverable(KeyError("a bug of ours"), tmp_path) is None
    assert recoverable(DataError("told already"), tmp_path) is None


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of a job that has kept its room, on a disk of which no byte is left."""
    if (reason := DiskFull().unavailable()) is not None:
        pytest.skip(reason)
    mount(place := tmp_path / "disk")
    try:
        (place / SCRATCH).mkdir()
        reserve_space(place)
        fill(place, 0)
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_what_ended_a_job_is_told_on_a_full_disk_too(full_disk: Path) -> None:
    # half of the message stayed beside the artifact, under a name of its own, and was published with it
    with pytest.raises(OSError, match="No space left"):
        (full_disk / SCRATCH / "more").write_bytes(bytes(10**6))
    (full_disk / SCRATCH / "more").unlink()
    record_failure(full_disk, StoreError("/data/store: No space left on device; free some space, then run again"))
    told = read_failure(full_disk, "general")
    assert isinstance(told, StoreError) and "free some space" in str(told)


def test_what_cannot_be_told_leaves_nothing(full_disk: Path) -> None:
    (full_disk / SCRATCH / "room").unlink()
    with pytest.raises(OSError, match="No space left"):
        (full_disk / SCRATCH / "others").write_bytes(bytes(10**6))  # takes what the room has left
    record_failure(full_disk, StoreError("too late"))
    assert read_failure(full_disk, "general") is None
    assert sorted(path.name for path in full_disk.rglob("*") if path.is_file()) == ["others"]


def test_a_killed_flow_is_told_in_one_sentence(tmp_path: Path) -> None:
    # the child dies before it has read anything of its configuration
    site = tmp_path / "flows" / "process"
    site.mkdir(parents=True)
    for folder in (site, site.parent):
        (folder / "__init__.py").touch()
    (site / "execute.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n")
    with pytest.raises(StageError, match="was killed by SIGKILL.*the same command continues"):
        execute({}, tmp_path)


def test_only_the_wall_clock_jumps(tmp_path: Path) -> None:
    fault = ClockJump()
    if (reason := fault.unavailable()) is not None:
        pytest.skip(reason)
    code = "import time\nwhile input(): print(time.time(), time.monotonic(), flush=True); time.sleep(0.01)"
    clock = Clock(tmp_path / "clock")
    with subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **clock.settings}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        read = []
        for _ in range(2):
            process.stdin.write("go\n")
            process.stdin.flush()
            read.append([float(value) for value in process.stdout.readline().split()])
            clock.jump(-86400)
        process.stdin.write("\n")
    (wall, monotonic), (later, after) = read
    assert -86400 <= later - wall < -80000 and 0 < after - monotonic < 6000


def test_a_damaged_artifact_that_was_deleted_as_told_is_made_again_though_what_came_of_it_is_there(
    tmp_path: Path, sources: dict[str, DataSource]
) -> None:
    made = plan_of(library_of(tmp_path, small=RECIPE), "small", sources)
    stored = {step.fingerprint for step in made.steps if step.name != "classify"}
    assert [step.name for step in made.missing(stored)] == ["classify"]


def test_a_snapshot_of_a_store_that_a_run_still_writes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # the campaign ended with FileNotFoundError: a step removed its scratch folder while its checkpoints were looked for
    work = tmp_path / ".work" / ("a" * 64)
    for folder in (work, work / SCRATCH):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"step-{len(folder.parts):09d}-{'b' * 64}.ckpt").touch()
    scandir = os.scandir

    def removed_first(path: Any = ".") -> Any:
        if not isinstance(path, int) and Path(path).name == SCRATCH:
            shutil.rmtree(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", removed_first)
    snapshot = Snapshot.of(Store(tmp_path))
    assert snapshot.begun and snapshot.checkpoints == {work.name: len(work.parts)} and not (work / SCRATCH).exists()
