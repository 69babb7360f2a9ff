"""Checks of the project: its settings, permissions of its folders, ports of its servers."""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.corpora.settings.dataset import load_settings
from pipelines.errors import CursusError
from pipelines.messages.translation import message
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
    line = "{folder}, {number} datasets" if len(datasets) != 1 else "{folder}, {number} dataset"
    return Check("project", State.OK, message(line, folder=root, number=len(datasets)))


def permissions(root: Path) -> Check:
    """Whether this user may write the project's folders, and only this user may read the account of its servers."""
    folders = [root / name for name in WRITTEN if (root / name).exists()]
    if closed := [folder for folder in folders if not os.access(folder, os.W_OK | os.X_OK)]:
        line = message("{folder}: this user may not write there; change its owner", folder=closed[0])
        return Check("permissions", State.PROBLEM, line)
    try:
        account(root)
    except CursusError as error:
        return Check("permissions", State.PROBLEM, str(error))
    file = state_folder(root) / ACCOUNT
    line = "{folder} can be written, {file} is its owner's alone" if file.exists() else "{folder} can be written"
    return Check("permissions", State.OK, message(line, folder=root, file=file))


def ports(root: Path) -> Check:
    """Whether the servers run, or their usual ports are free."""
    services = running(root)
    if services is not None:
        addresses = f"{services.prefect_url}, {services.mlflow_url}"
        return Check("ports", State.OK, message("the servers run: {addresses}", addresses=addresses))
    taken = [message("port {port} ({name})", port=port, name=name) for name, port in PORTS.items() if port_taken(port)]
    if taken:
        line = "{ports}: in use by another program, `cursus up` chooses free ports instead"
        return Check("ports", State.NOTE, message(line, ports=message(" and ").join(taken)))
    ports = message(" and ").join(map(str, PORTS.values()))
    return Check("ports", State.OK, message("{ports} are free for `cursus up`", ports=ports))
