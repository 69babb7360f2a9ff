"""SIGKILL at a random moment of a run: its flow, its training, its Prefect server, one of its ranks."""

from __future__ import annotations

from abc import abstractmethod
from random import Random

import psutil

from benchmarks.faults.attempt import Attempt
from benchmarks.faults.fault import Fault, Moment, Strike
from benchmarks.faults.judge import Snapshot
from benchmarks.faults.regime import Checkout
from tasks.servers import prefect_application

FLOW, COMMAND = "flows.process.execute", "flows.cli.app"
TRAINING, RANK = "pipelines.training.ranks.worker", "pipelines.training.ranks.rank "
SERVER = prefect_application.FACTORY


class Kill(Fault):
    """Wait for a random moment of the run; then kill the process as soon as it exists."""

    row = 5

    @abstractmethod
    def victim(self, attempt: Attempt, random: Random) -> psutil.Process | None:
        """The process to kill; None when it does not run."""

    def settings(self) -> dict[str, str]:
        """Environment variables of the run."""
        return {}

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        moment = Moment.draw(random)
        attempt = checkout.start(settings=self.settings())
        victims: list[psutil.Process] = []

        def ready() -> bool:
            if moment.reached(attempt, checkout) and (victim := self.victim(attempt, random)) is not None:
                victims.append(victim)
            return bool(victims)

        if not attempt.watch(ready):
            return Strike.unprovoked(checkout, attempt.ended())
        command = victims[0].pid == attempt.processes()[0].pid
        attempt.kill(victims[0])
        finished = Snapshot.of(checkout.store)
        return Strike(moment.described(finished), attempt.ended(killed=command), finished)


class KillFlow(Kill):
    name = "kill_flow"
    description = "SIGKILL to the flow's process, one time in five to the command that started it"
    cases = 60

    def victim(self, attempt: Attempt, random: Random) -> psutil.Process | None:
        processes = attempt.find(COMMAND if random.random() < 0.2 else FLOW)
        return processes[0] if processes else None


class KillTraining(Kill):
    name = "kill_training"
    description = "SIGKILL to the training process"
    cases = 60

    def victim(self, attempt: Attempt, random: Random) -> psutil.Process | None:
        processes = attempt.find(TRAINING)
        return processes[0] if processes else None


class KillRank(Kill):
    name = "kill_rank"
    description = "SIGKILL to one of two ranks that train together (DDP over gloo)"
    cases = 15
    row = 1
    devices = 2

    def victim(self, attempt: Attempt, random: Random) -> psutil.Process | None:
        processes = attempt.find(RANK)
        return random.choice(processes) if len(processes) == self.devices else None


class KillServer(Kill):
    name = "kill_server"
    description = "SIGKILL to the temporary Prefect server of the run"
    cases = 30
    row = 3
    standing = False

    def victim(self, attempt: Attempt, random: Random) -> psutil.Process | None:
        processes = attempt.find(SERVER)
        return processes[-1] if processes else None
