"""Access to the Prefect server that `cursus up` has started, for commands that change what it launches."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.errors import CursusError
from tasks.environment import defaults
from tasks.servers.accounts import required_account
from tasks.servers.registration import register
from tasks.servers.services import running


def prefect_access(root: Path) -> tuple[str, str]:
    """Address and account of the API of the checkout's running Prefect server. Raises CursusError when the servers do
    not run."""
    services = running(root.resolve())
    if services is None:
        raise CursusError("the servers do not run: `cursus up` starts them, and registers the deployments")
    return f"{services.prefect_url}/api", required_account(root)[0].line


def deploy(root: Path) -> str:
    """Register the deployments, their forms and the automations of the checkout at `root` again; returns the address of
    the API. Raises CursusError when the servers do not run, and for mistakes in what is registered."""
    api, auth = prefect_access(root)
    register(root.resolve(), api, auth, {**defaults(root), **os.environ, "PREFECT_API_AUTH_STRING": auth})
    return api
