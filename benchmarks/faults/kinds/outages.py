"""Outages of Prefect's and MLflow's servers at a random moment: killed, suspended for some seconds, or a locked
database."""

from __future__ import annotations

import signal
import sqlite3
import sys
import time
from abc import abstractmethod
from contextlib import closing
from random import Random

from benchmarks.faults.attempt import Attempt
from benchmarks.faults.fault import Fault, Moment, Strike
from benchmarks.faults.judge import Snapshot
from benchmarks.faults.kinds.kills import SERVER
from benchmarks.faults.regime import Checkout, environment_of
from tasks.servers import processes

SECONDS = (2.0, 25.0)
"""Range of an outage's duration."""
_MLFLOW = "campaign-mlflow"


class Outage(Fault):
    """A temporary outage from a random moment of the run, in processor time."""

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        moment, away = Moment.draw(random), random.uniform(*SECONDS)
        attempt = checkout.start()
        if not attempt.watch(lambda: moment.reached(attempt, checkout) and self.there(attempt)):
            return Strike.unprovoked(checkout, attempt.ended())
        self.take_away(checkout, attempt, away)
        finished = Snapshot.of(checkout.store)
        return Strike(f"for {away:.0f} s {moment.described(finished)}", attempt.ended(), finished)

    def there(self, attempt: Attempt) -> bool:
        """Whether the service has started."""
        return True

    @abstractmethod
    def take_away(self, checkout: Checkout, attempt: Attempt, seconds: float) -> None:
        """Suspend the service, and resume it after `seconds`."""


class PrefectStopped(Outage):
    name = "prefect_stopped"
    description = "the temporary Prefect server is suspended (SIGSTOP) for 2 to 25 seconds"
    cases = 10
    standing = False

    def there(self, attempt: Attempt) -> bool:
        return bool(attempt.find(SERVER))

    def take_away(self, checkout: Checkout, attempt: Attempt, seconds: float) -> None:
        server = attempt.find(SERVER)[-1]
        server.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        if server.is_running():
            server.send_signal(signal.SIGCONT)


class MlflowLocked(Outage):
    name = "mlflow_locked"
    description = "another process holds an exclusive lock on MLflow's SQLite database for 2 to 25 seconds"
    cases = 10
    tracked = False

    def take_away(self, checkout: Checkout, attempt: Attempt, seconds: float) -> None:
        with closing(sqlite3.connect(checkout.folder / ".cursus" / "mlflow.db", timeout=30)) as database:
            database.execute("BEGIN EXCLUSIVE")
            time.sleep(seconds)
            database.rollback()


class MlflowKilled(Fault):
    name = "mlflow_killed"
    description = "the MLflow server that a run reports to is killed, and restarted before the next run"
    cases = 10
    tracked = False

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        moment, port = Moment.draw(random), processes.free_port()
        server = _serve(checkout, port)
        checkout.settings["MLFLOW_TRACKING_URI"] = f"http://127.0.0.1:{port}"
        attempt = checkout.start()
        if not attempt.watch(lambda: moment.reached(attempt, checkout)):
            return Strike.unprovoked(checkout, attempt.ended())
        for process in processes.tree(server):
            attempt.kill(process)
        finished = Snapshot.of(checkout.store)
        ending = attempt.ended()
        _serve(checkout, port)
        return Strike(moment.described(finished), ending, finished)

    def after(self, checkout: Checkout) -> None:
        processes.stop(processes.marked(_MLFLOW, checkout.folder))


def _serve(checkout: Checkout, port: int) -> processes.Process:
    state = checkout.folder / ".cursus"
    command = [
        *(sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{state / 'mlflow.db'}"),
        *("--artifacts-destination", str(state / "mlartifacts")),
    ]
    quiet = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
    log = state / "logs" / "campaign-mlflow.log"
    server = processes.start(
        _MLFLOW, command, root=checkout.folder, environment={**environment_of(checkout.folder), **quiet}, log=log
    )
    assert processes.wait_until_answers(f"http://127.0.0.1:{port}/health", server, seconds=120), log.read_text()
    return server
