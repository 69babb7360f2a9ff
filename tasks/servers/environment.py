"""Preparation of a process for this checkout: the settings of every tool, and the addresses of running servers."""

from __future__ import annotations

import os
from pathlib import Path

from tasks.environment import defaults, state_folder


def prepare_environment(root: Path) -> None:
    """Set the default environment of every tool for the checkout at `root`. Call it before any of them is imported.

    While the servers started by `make up` run, Prefect uses their address; otherwise Prefect starts a temporary server.
    MLflow is always accessed through its database, so that stopping the servers never breaks a run.
    """
    state = state_folder(root)
    state.mkdir(parents=True, exist_ok=True)
    for name, value in defaults(root).items():
        os.environ.setdefault(name, value)
    if "PREFECT_API_URL" not in os.environ and (state / "services.json").exists():
        from tasks.servers.accounts import account
        from tasks.servers.services import running

        services = running(root)
        if services is not None:
            os.environ["PREFECT_API_URL"] = f"{services.prefect_url}/api"
            if (credentials := account(root)) is not None:
                os.environ.update(credentials.prefect)
