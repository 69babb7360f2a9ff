"""Preparation of a process for this checkout: the settings of every tool, and the addresses of running servers."""

from __future__ import annotations

import atexit
import os
from pathlib import Path

from pipelines.safety.redaction import redact_logs
from tasks.display.log_records import SentenceRecord
from tasks.environment import defaults, importable, is_installed, keep_private, private_state_folder

DETECTED: dict[str, str] = {}
"""What `prepare_environment` has set in this process because servers of this checkout were running."""


def environment_without_servers() -> dict[str, str]:
    """This process's environment for a child that shall look for running servers itself: they may have been stopped
    in between."""
    return {name: value for name, value in os.environ.items() if DETECTED.get(name) != value}


def prepare_environment(root: Path) -> None:
    """Set the default environment of every tool for the checkout at `root`. Call it before any of them is imported.

    While the servers started by `make up` run, Prefect uses their address; otherwise Prefect starts a temporary server.
    MLflow is always accessed through its database, so that stopping the servers never breaks a run.
    From here on, logs hide secrets, and have a user's mistakes without a traceback.
    """
    redact_logs(SentenceRecord)
    keep_private(root)
    atexit.unregister(keep_private)
    atexit.register(keep_private, root)
    state = private_state_folder(root)
    for name, value in defaults(root).items():
        os.environ.setdefault(name, value)
    if is_installed():
        os.environ.update(importable())
    if (state / "services.json").exists():
        from tasks.servers.accounts import account
        from tasks.servers.services import running

        chosen, services = os.environ.get("PREFECT_API_URL"), running(root)
        if services is not None and chosen in (None, f"{services.prefect_url}/api"):
            DETECTED["PREFECT_API_URL"] = f"{services.prefect_url}/api"
            if (credentials := account(root)) is not None:
                DETECTED.update(credentials.prefect)
            os.environ.update(DETECTED)
