"""A Prefect server for one run, started while the run's own process still imports its dependencies.

    server = TemporaryServer.start_if_needed(root)   # None when a server runs, or Prefect is configured to use one
    …                                                # imports, a training process
    server.wait()

It is the server that Prefect would start itself: the same command and settings. Prefect starts it only when the flow
begins, and imports the whole server into the flow's process to do so; together that takes longer than everything else a
run waits for.
"""

from __future__ import annotations

import atexit
import os
import random
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from pipelines.errors import StageError
from tasks.environment import state_folder
from tasks.servers.processes import answers, port_taken

APPLICATION = "prefect.server.api.server:create_app"
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

    def __init__(self, address: str, process: subprocess.Popen[bytes]) -> None:
        self.address, self._process = address, process

    @classmethod
    def start_if_needed(cls, root: Path) -> Self | None:
        """Start a server and set PREFECT_API_URL, if Prefect would start one itself. Call it before Prefect is
        imported."""
        home = Path(os.environ.get("PREFECT_HOME") or state_folder(root) / "prefect")
        if any(os.environ.get(name) for name in PREFECT_SETTINGS) or (home / "profiles.toml").exists():
            return None
        port = next(port for port in random.sample(PORTS, len(PORTS)) if not port_taken(port))
        spec = find_spec("prefect")
        assert spec is not None and spec.origin is not None
        server = [
            sys.executable,
            "-m",
            "uvicorn",
            "--app-dir",
            str(Path(spec.origin).parents[1]),
            "--factory",
            APPLICATION,
        ]
        options = ["--host", "127.0.0.1", "--port", str(port), "--log-level", "error", "--lifespan", "on"]
        process = subprocess.Popen([*server, *options], env={**os.environ, **EPHEMERAL}, stdin=subprocess.DEVNULL)
        started = cls(f"http://127.0.0.1:{port}/api", process)
        # exit handlers run in reverse order of registration: Prefect's own, registered later, still reach the server
        atexit.register(started.stop)
        os.environ["PREFECT_API_URL"] = started.address
        return started

    def wait(self) -> None:
        """Wait until the server answers. Raises StageError when it has ended, or does not answer in time."""
        deadline = time.monotonic() + PATIENCE
        while not answers(f"{self.address}/health"):
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
