"""When deployments are registered: at each start of the servers, and again when what they are made of has changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from pipelines.recipe.folders import RecipeFolders
from tasks.environment import append_privately, state_folder
from tasks.servers import deployments

SOURCES = ("prefect.yaml", "params.yaml", "automations/*.yaml")
"""What deployments, their forms and automations are made of, besides recipes."""


def register(root: Path, api: str, auth: str | None, environment: Mapping[str, str]) -> None:
    """Register the deployments and automations of the checkout at `root` on the server at `api`.

    Raises CursusError for mistakes in params.yaml, and when Prefect rejects a deployment.
    """
    digest = _digest(root)
    variables = {**environment, "PREFECT_API_URL": api}
    log = state_folder(root) / "logs" / "deploy.log"
    deployments.register(root, api, auth=auth, environment=variables, log=log)
    with append_privately(_record(root), anew=True) as output:
        output.write(f"{api} {digest}".encode())


def register_changes(root: Path, api: str, auth: str | None) -> bool:
    """Register again if a recipe or a file of `SOURCES` has changed since the last time; returns whether it had."""
    record = _record(root)
    if record.exists() and record.read_text() == f"{api} {_digest(root)}":
        return False
    account = {} if auth is None else {"PREFECT_API_AUTH_STRING": auth}
    register(root, api, auth, {**os.environ, **account})
    return True


def _record(root: Path) -> Path:
    return state_folder(root) / "registered"


def _digest(root: Path) -> str:
    digest = hashlib.sha256()
    sources = [path for pattern in SOURCES for path in sorted(root.glob(pattern))]
    for path in [*sources, *RecipeFolders.of_project(root).files.values()]:
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    return digest.hexdigest()
