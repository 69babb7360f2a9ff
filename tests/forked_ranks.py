"""A launcher whose ranks are forked from one process that has imported what training needs: they start at once.

What a rank does is the product's own (`pipelines.training.ranks.rank`); only its start differs. Launchers
themselves are tested with the processes that they really start.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import sys
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from unittest import mock

import psutil

from pipelines.recipe.job import Job
from pipelines.training.ranks.rank import LIBRARIES
from tasks.launchers import LauncherSession
from tasks.launchers.environment import training_environment
from tasks.launchers.following import last_error

ENVIRONMENT = {**training_environment(), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
_CONTEXT = multiprocessing.get_context("forkserver")


class ForkedAttempt:
    """The ranks of one start of a job. Where one dies, the others are killed, as by torchrun."""

    def __init__(self, job: Job, order: Path, log: Path) -> None:
        self.log = log
        count = job.runtime.ranks
        rendezvous = order.with_name(f"{log.stem}-rendezvous") if count > 1 else None
        self.processes: list[ForkServerProcess] = [
            _CONTEXT.Process(target=_rank, args=(order, number, count, rendezvous, log)) for number in range(count)
        ]
        with mock.patch.dict(os.environ, ENVIRONMENT):  # for the process they are forked from, which the first starts
            forkserver.ensure_running()
        for process in self.processes:
            process.start()

    def alive(self) -> bool:
        if any(process.exitcode not in (None, 0) for process in self.processes):
            self._kill()
        return any(process.is_alive() for process in self.processes)

    def failure_reason(self) -> str:
        killed = next((-code for one in self.processes if (code := one.exitcode) is not None and code < 0), None)
        return f"killed by {signal.Signals(killed).name}" if killed else last_error(self.log) or "no reason was logged"

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(30)
        self._kill()

    def _kill(self) -> None:
        for process in self.processes:
            process.kill()
            process.join()


class ForkedSession(LauncherSession):
    """Starts the ranks of jobs on this machine, without GPUs."""

    def __init__(self, root: Path, log: Path) -> None:
        super().__init__(root, log)
        self._numbers = itertools.count()
        self.attempt: ForkedAttempt | None = None
        """The one that was started last."""

    def ranks(self) -> list[psutil.Process]:
        """The processes of the job that runs, by rank."""
        assert self.attempt is not None
        return [psutil.Process(process.pid) for process in self.attempt.processes]

    def _begin(self, job: Job, order: Path) -> ForkedAttempt:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        log = self.log.with_name(f"{self.log.stem}-{os.getpid()}-{next(self._numbers)}.log")
        self.attempt = ForkedAttempt(job, order, log)
        return self.attempt

    def _ended(self, attempt: object) -> None:
        assert isinstance(attempt, ForkedAttempt)
        for process in attempt.processes:
            process.join(30)


def _rank(order: Path, number: int, count: int, rendezvous: Path | None, log: Path) -> None:
    from pipelines.training.ranks import rank

    with log.open("a") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.environ |= {name: str(number) for name in ("RANK", "LOCAL_RANK")}
    os.environ |= {name: str(count) for name in ("WORLD_SIZE", "LOCAL_WORLD_SIZE")}
    sys.exit(rank.main(order, rendezvous))


_CONTEXT.set_forkserver_preload([*LIBRARIES, "pipelines.training.ranks.rank", "torch.distributed"])
