"""A Prefect server for one run, started while the run's own process still imports what it needs.

    server = TemporaryServer.wanted(root)      # None where a server is up, or Prefect has been told of one
    …                                          # imports, a training process
    server.wait()

It is the server that Prefect would start itself: the same command and settings. Prefect does so only when the flow begins, and
imports the whole server into the flow's process for it, which together takes longer than all else that a run waits for.
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
"""Prefect's own choice: below those that the system gives to connections."""
EPHEMERAL = {"PREFECT_UI_ENABLED": "0", "PREFECT__SERVER_EPHEMERAL": "1", "PREFECT__SERVER_FINAL": "1"}
"""No pages, and only the services that a single run needs."""
TOLD_PREFECT = ("PREFECT_API_URL", "PREFECT_PROFILE", "PREFECT_PROFILES_PATH")
DIED_STARTING = (
    "Prefect's temporary server ended while it started, and nothing of this run was begun; run the same command again"
)
SILENT = "Prefect's temporary server did not answer within {:.0f} s, and nothing of this run was begun; run the same command again"
PATIENCE = 120.0
"""Seconds that it may take to answer. A free two-core machine needs 5."""
LOOK_SECONDS = 0.05
STOP_SECONDS = 5.0


class TemporaryServer:
    """The server of this process's runs: it ends with this process, after Prefect has told it the last."""

    def __init__(self, address: str, process: subprocess.Popen[bytes]) -> None:
        self.address, self._process = address, process

    @classmethod
    def wanted(cls, root: Path) -> Self | None:
        """Start one, and point Prefect at it, where it would start one itself. Call it before Prefect is imported."""
        home = Path(os.environ.get("PREFECT_HOME") or state_folder(root) / "prefect")
        if any(os.environ.get(name) for name in TOLD_PREFECT) or (home / "profiles.toml").exists():
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
        # the first to be registered is the last to be called: Prefect's own handlers still tell the server what is left
        atexit.register(started.stop)
        os.environ["PREFECT_API_URL"] = started.address
        return started

    def wait(self) -> None:
        """Return when it answers. Raises StageError where it has ended, or stays silent."""
        deadline = time.monotonic() + PATIENCE
        while not answers(f"{self.address}/health"):
            if self._process.poll() is not None:
                raise StageError(DIED_STARTING)
            if time.monotonic() > deadline:
                raise StageError(SILENT.format(PATIENCE))
            time.sleep(LOOK_SECONDS)

    def stop(self) -> None:
        """End it, by force where it does not."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
