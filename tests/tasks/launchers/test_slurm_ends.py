"""Every way in which a job of Slurm's may end, with ranks that only behave as told."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.errors import StageError
from pipelines.lineage.results import SCRATCH
from pipelines.recipe.job import Job
from tasks.launchers import slurm, slurm_queue
from tasks.launchers.slurm import job_name
from tests.tasks.launchers.slurm_cluster import Cluster
from tests.tasks.launchers.slurm_jobs import SECONDS, Heard, Running, alone, opened, started_again, until, warn

RANK = """\
#!{python} -S
# a rank that leaves a file for each start, and then does what it is told
import os, signal, sys, time
from pathlib import Path

folder, rank = Path(sys.argv[3]).parent, os.environ["RANK"]
slurm = [name for name in os.environ if name.startswith("SLURM_")]
(folder / f"start-{{rank}}-{{os.getpid()}}").write_text(f"{{rank}} of {{os.environ['WORLD_SIZE']}} {{slurm}}")

def leave(*_):
    time.sleep(1)
    (folder / f"left-{{rank}}").touch()
    sys.exit(143)

exec((folder / "behaviour.py").read_text())
"""
LISTEN, WAIT = "signal.signal(signal.SIGTERM, leave)", "time.sleep(100)"


@pytest.fixture
def rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Job, str], Callable[[], list[str]]]:
    """Let the ranks of a job behave as told, without torch; gives a view of what they said when they started."""
    program = tmp_path / "rank"
    program.write_text(RANK.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    def behave(job: Job, behaviour: str) -> Callable[[], list[str]]:
        scratch = job.out / SCRATCH
        (scratch / "behaviour.py").write_text(behaviour, encoding="utf-8")
        return lambda: sorted(path.read_text() for path in scratch.glob("start-*"))

    return behave


def test_neither_an_early_warning_nor_a_preemption_loses_a_job_that_gets_on(
    slurm_cluster: Cluster, make_job: Callable[[], Job], rank: Callable[[Job, str], Callable[[], list[str]]]
) -> None:
    job = alone(make_job())
    starts = rank(job, WAIT)  # it does not listen yet: any signal ends it
    with opened(job, time="00:05:00") as launcher:
        running = Running(launcher, job)
        until(starts)
        warn(job)
        until(lambda: started_again(job, 1) and len(starts()) == 2)
        # a job of a partition that goes before takes the node: ranks hear SIGTERM, and have a grace time
        urgent = ["srun", "--partition=urgent", "--exclusive", "--quiet", "true"]
        subprocess.run(urgent, check=True, timeout=SECONDS)
        until(lambda: started_again(job, 2) and len(starts()) == 3)
        assert not running.errors
        warn(job)
        running.wait()
    assert "two time limits have passed without a checkpoint" in str(running.errors[0])
    assert starts() == ["0 of 1 []"] * 3


def test_a_rank_that_fails_ends_the_job_with_its_words(
    slurm_cluster: Cluster, make_job: Callable[[], Job], rank: Callable[[Job, str], Callable[[], list[str]]]
) -> None:
    job = make_job()
    starts = rank(
        job, f"{LISTEN}\nif rank == '1': print('no such number', flush=True); os.kill(os.getpid(), 9)\n{WAIT}"
    )
    with opened(job) as launcher, pytest.raises(StageError, match="failed: no such number: srun: .* task 1: Killed"):
        launcher.run(job, Heard())
    assert starts() == ["0 of 2 []", "1 of 2 []"]


def test_a_silent_controller_is_no_news_and_a_cancelled_job_ends_in_order(
    slurm_cluster: Cluster, make_job: Callable[[], Job], rank: Callable[[Job, str], Callable[[], list[str]]]
) -> None:
    job = make_job()
    scratch = job.out / SCRATCH
    starts = rank(job, f"{LISTEN}\n(folder / f'listens-{{rank}}').touch()\n{WAIT}")
    with opened(job) as launcher:
        running = Running(launcher, job)
        until(lambda: len(list(scratch.glob("listens-*"))) == 2)
        slurm_cluster.stop_controller()
        try:
            with pytest.raises(slurm_queue.ControllerUnavailable):
                slurm_queue.query("1")
            time.sleep(2 * slurm.POLL_SECONDS)  # it has been asked about meanwhile
            assert not running.errors
        finally:
            slurm_cluster.start_controller()
    running.wait()
    (error,) = running.errors
    assert isinstance(error, StageError) and "was cancelled" in str(error)
    assert sorted(path.name for path in scratch.glob("left-*")) == ["left-0", "left-1"] and len(starts()) == 2
    assert slurm_queue.find(job_name(job)) is None
