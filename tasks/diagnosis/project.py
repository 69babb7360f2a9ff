"""Checks of the project: its settings, permissions of its folders, ports of its servers."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.corpora.settings.dataset import load_settings
from pipelines.errors import CursusError
from tasks.diagnosis.check import Check, State
from tasks.environment import ACCOUNT, MLFLOW_PORT, state_folder
from tasks.servers.accounts import account
from tasks.servers.processes import port_taken
from tasks.servers.services import PREFECT_PORT, running

PORTS = {"Prefect": PREFECT_PORT, "MLflow": MLFLOW_PORT}
WRITTEN = ("", ".cursus", "data", "reports")
"""Folders of a project that commands write to; those that do not exist are made."""


def settings(root: Path) -> Check:
    """Whether params.yaml can be read."""
    try:
        datasets = load_settings(root)
    except CursusError as error:
        return Check("project", State.PROBLEM, str(error))
    return Check("project", State.OK, f"{root}, {len(datasets)} dataset{'s' * (len(datasets) != 1)}")


def permissions(root: Path) -> Check:
    """Whether this user may write the project's folders, and only this user may read the account of its servers."""
    folders = [root / name for name in WRITTEN if (root / name).exists()]
    if closed := [folder for folder in folders if not os.access(folder, os.W_OK | os.X_OK)]:
        return Check("permissions", State.PROBLEM, f"{closed[0]}: this user may not write there; change its owner")
    try:
        account(root)
    except CursusError as error:
        return Check("permissions", State.PROBLEM, str(error))
    file = state_folder(root) / ACCOUNT
    secret = f", {file} is its owner's alone" if file.exists() else ""
    return Check("permissions", State.OK, f"{root} can be written{secret}")


def ports(root: Path) -> Check:
    """Whether the servers run, or their usual ports are free."""
    services = running(root)
    if services is not None:
        return Check("ports", State.OK, f"the servers run: {services.prefect_url}, {services.mlflow_url}")
    taken = [f"port {port} ({name})" for name, port in PORTS.items() if port_taken(port)]
    if taken:
        used = " and ".join(taken)
        return Check("ports", State.NOTE, f"{used}: in use by another program, `cursus up` chooses free ports instead")
    return Check("ports", State.OK, f"{' and '.join(map(str, PORTS.values()))} are free for `cursus up`")
