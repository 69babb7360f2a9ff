"""A Prefect server for one run, started while the run's own process still imports its dependencies.

    server = TemporaryServer.start_if_needed(root)   # None when a server runs, or Prefect is configured to use one
    …                                                # imports, a training process
    server.wait()

It is the server that Prefect would start itself, behind the checks of `make up`'s: a random port, and a random account
that only this process and its children know. Prefect starts it only when the flow begins, and imports the whole server
into the flow's process to do so; together that takes longer than everything else a run waits for.
"""

from __future__ import annotations

import atexit
import os
import random
import secrets
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from pipelines.errors import StageError
from tasks.environment import state_folder
from tasks.servers import prefect_application
from tasks.servers.processes import answers, port_taken

PORTS = range(8000, 9000)
"""Prefect's own range: below the system's ephemeral ports."""
EPHEMERAL = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
"""No UI, and only the services that a single run needs."""
PREFECT_SETTINGS = ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH")
DIED_STARTING = "Prefect's temporary server ended during its start, before the run began; run the same command again"
NO_ANSWER = (
    "Prefect's temporary server did not answer within {:.0f} s, so the run did not begin; run the same command again"
)
PATIENCE = 120.0
"""Seconds that it may take to answer. An idle two-core machine needs 5."""
POLL_SECONDS = 0.05
STOP_SECONDS = 5.0


class TemporaryServer:
    """The Prefect server of this process's runs; it ends with this process, after Prefect's last report."""

    def __init__(self, clients: dict[str, str], process: subprocess.Popen[bytes], starting: ExitStack) -> None:
        self.clients = clients
        """Environment variables for Prefect's clients: the address and the account."""
        self._process, self._starting = process, starting

    @classmethod
    def start_if_needed(cls, root: Path) -> Self | None:
        """Start a server and set PREFECT_API_URL, if Prefect would start one itself. Call it before Prefect is
        imported."""
        home = Path(os.environ.get("PREFECT_HOME") or state_folder(root) / "prefect")
        if any(os.environ.get(name) for name in PREFECT_SETTINGS) or (home / "profiles.toml").exists():
            return None
        starting = ExitStack()
        starting.enter_context(prefect_application.starting(home))
        port = next(port for port in random.sample(PORTS, len(PORTS)) if not port_taken(port))
        url, auth = f"http://127.0.0.1:{port}", f"run:{secrets.token_urlsafe(24)}"
        process = subprocess.Popen(
            [sys.executable, *prefect_application.command("127.0.0.1", port, "--log-level", "error")],
            env={**os.environ, **EPHEMERAL, **prefect_application.protection(auth, url)},
            stdin=subprocess.DEVNULL,
            umask=0o077,
        )
        clients = {"PREFECT_API_URL": f"{url}/api", "PREFECT_API_AUTH_STRING": auth}
        started = cls(clients, process, starting)
        # exit handlers run in reverse order of registration: Prefect's own, registered later, still reach the server
        atexit.register(started.stop)
        os.environ |= clients
        return started

    def wait(self) -> None:
        """Wait until the server answers. Raises StageError when it has ended, or does not answer in time."""
        deadline = time.monotonic() + PATIENCE
        with self._starting:
            while not answers(f"{self.clients['PREFECT_API_URL']}/health"):
                if self._process.poll() is not None:
                    raise StageError(DIED_STARTING)
                if time.monotonic() > deadline:
                    raise StageError(NO_ANSWER.format(PATIENCE))
                time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Terminate the server; kill it when it does not end."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
