"""Servers that go away at a random moment: Prefect's and MLflow's, killed, or stopped for a while, or a locked database."""

from __future__ import annotations

import signal
import sqlite3
import sys
import time
from contextlib import closing
from random import Random

from benchmarks.faults.fault import Fault, Strike
from benchmarks.faults.judge import Snapshot
from benchmarks.faults.kinds.kills import SERVER
from benchmarks.faults.regime import Checkout, environment_of
from tasks import processes

SECONDS = (2.0, 25.0)
"""How long a server is away."""
_MLFLOW = "campaign-mlflow"


class PrefectStopped(Fault):
    name = "prefect_stopped"
    says = "the temporary Prefect server stands still (SIGSTOP) for 2 to 25 seconds"
    cases = 6
    standing = False

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        share, away = random.random(), random.uniform(*SECONDS)
        attempt = checkout.start()
        if not attempt.watch(lambda: attempt.cpu() >= share * checkout.cpu and attempt.find(SERVER)):
            ending = attempt.ended()
            return (
                None if ending.success else Strike("nothing: it ended by itself", ending, Snapshot.of(checkout.store))
            )
        server = attempt.find(SERVER)[-1]
        server.send_signal(signal.SIGSTOP)
        time.sleep(away)
        if server.is_running():
            server.send_signal(signal.SIGCONT)
        finished = Snapshot.of(checkout.store)
        return Strike(
            f"for {away:.0f} s after {share:.0%} of an undisturbed run's work: {finished}", attempt.ended(), finished
        )


class MlflowLocked(Fault):
    name = "mlflow_locked"
    says = "another process holds MLflow's SQLite database alone for 2 to 25 seconds"
    cases = 7
    tracked = False

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        share, away = random.random(), random.uniform(*SECONDS)
        attempt = checkout.start()
        if not attempt.watch(lambda: attempt.cpu() >= share * checkout.cpu):
            attempt.ended()
            return None
        with closing(sqlite3.connect(checkout.folder / ".cursus" / "mlflow.db", timeout=30)) as database:
            database.execute("BEGIN EXCLUSIVE")
            time.sleep(away)
            database.rollback()
        finished = Snapshot.of(checkout.store)
        return Strike(
            f"for {away:.0f} s after {share:.0%} of an undisturbed run's work: {finished}", attempt.ended(), finished
        )


class MlflowKilled(Fault):
    name = "mlflow_killed"
    says = "the MLflow server that a run tells is killed, and started again before the next run"
    cases = 7
    tracked = False

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        share = random.random()
        port = processes.free_port()
        url = f"http://127.0.0.1:{port}"
        state = checkout.folder / ".cursus"
        options = [
            "--backend-store-uri",
            f"sqlite:///{state / 'mlflow.db'}",
            "--artifacts-destination",
            str(state / "mlartifacts"),
        ]
        command = [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
            "--workers",
            "1",
            *options,
        ]
        environment = {
            **environment_of(checkout.folder),
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_DISABLE_TELEMETRY": "true",
        }

        def serve() -> processes.Process:
            log = checkout.folder / ".cursus" / "logs" / "campaign-mlflow.log"
            server = processes.start(_MLFLOW, command, root=checkout.folder, environment=environment, log=log)
            assert processes.wait_until_answers(f"{url}/health", server, seconds=120), log.read_text()
            return server

        server = serve()
        checkout.settings["MLFLOW_TRACKING_URI"] = url
        attempt = checkout.start()
        struck = attempt.watch(lambda: attempt.cpu() >= share * checkout.cpu)
        for process in processes.tree(server):
            attempt.kill(process)
        finished = Snapshot.of(checkout.store)
        ending = attempt.ended()
        serve()
        return (
            Strike(f"after {share:.0%} of an undisturbed run's work: {finished}", ending, finished) if struck else None
        )

    def after(self, checkout: Checkout) -> None:
        processes.stop(processes.marked(_MLFLOW, checkout.folder))
