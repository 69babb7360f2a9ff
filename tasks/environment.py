"""The default process environment: `tasks.servers.environment` sets it before Prefect, MLflow, DVC or Great
Expectations is imported.

Each of those tools reads its settings at import and has its own telemetry switch, so all of them are set in one place
and early. A value that the user has exported always takes precedence.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from pipelines.errors import CursusError
from pipelines.shipped import shipped_folder

QUIET = {
    # telemetry: every tool has its own switch, and none of them respects all the others
    "DO_NOT_TRACK": "true",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DVC_NO_ANALYTICS": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Prefect's newer UI calls an analytics host from the browser whatever the server's settings say
    "PREFECT_SERVER_UI_V2_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    # the console shows warnings; the run's page in the UI shows every line
    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "WARNING",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "PREFECT_CLI_COLORS": "false",
    "MLFLOW_DISABLE_AGENT_HINT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "TOKENIZERS_PARALLELISM": "false",
}

PATIENT = {
    # a busy two-core machine needs 12 s to start a temporary server; the default limit is 20 s
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    # retry an unreachable server for 14 s at a time instead of two minutes: a restarted one is back by then
    "PREFECT_CLIENT_MAX_RETRIES": "3",
    # with this, the automation in automations/ marks a killed run as crashed within two minutes
    "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
}


MLFLOW_PORT = 5000
"""Port of the MLflow server of `cursus up`, if it is free."""
STORE = Path("data", "store")
"""Folder of a checkout's artifacts, relative to its root."""
ACCOUNT = "account"
"""File of the state folder with the name and password of the servers' account."""


def project_root() -> Path:
    """The folder of the project: CURSUS_ROOT, or the one around the current folder, or the checkout with this file.

    Raises CursusError where the package is installed and the current folder is in no project.
    """
    named = os.environ.get("CURSUS_ROOT")
    if named:
        return Path(named).resolve()
    here = Path.cwd().resolve()
    project = next((folder for folder in (here, *here.parents) if is_own_project(folder)), None)
    if project is None and is_installed():
        raise CursusError(f"{here} is in no project: make one with `cursus init my-project`, or set CURSUS_ROOT")
    return project or shipped_folder().resolve()


def is_own_project(folder: Path) -> bool:
    """Whether `folder` is what `cursus init` makes: settings and recipes, but not the code of a checkout."""
    settings = (folder / "params.yaml").is_file() and (folder / "recipes").is_dir()
    return settings and not (folder / "pipelines" / "__init__.py").is_file()


def is_installed() -> bool:
    """Whether this code is the installed package, whose tree is inside the package `cursus`, and no checkout."""
    return (shipped_folder().parent / "py.typed").is_file()


def state_folder(root: Path) -> Path:
    """Folder of this checkout's state: databases, logs, process ids. Git-ignored, safe to delete when nothing runs."""
    return root.resolve() / ".cursus"


def private_state_folder(root: Path) -> Path:
    """The state folder, made if needed; only its owner may enter it, whatever the umask."""
    folder = state_folder(root)
    folder.mkdir(parents=True, exist_ok=True)
    if folder.stat().st_mode & 0o077:
        folder.chmod(0o700)
    return folder


def keep_private(root: Path) -> None:
    """Leave everything below the state folder to its owner alone, whatever wrote it and with which umask.

    Prefect, MLflow and DVC write there, too, with modes of their own: DVC's folders are open to all users. Nobody else
    can enter the state folder meanwhile. Files with several names are those of the store, linked by MLflow's models:
    they keep the mode they have there. So does the account: a password that others could read is refused.
    """
    for folder, folders, files in os.walk(private_state_folder(root)):
        for name, mode in [*((name, 0o700) for name in folders), *((name, 0o600) for name in files)]:
            if name == ACCOUNT:
                continue
            path = os.path.join(folder, name)
            with suppress(OSError):  # it is gone meanwhile, or belongs to another user
                status = os.lstat(path)
                linked = stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1)
                if status.st_mode & 0o077 and not linked:
                    os.chmod(path, mode)


def append_privately(file: Path, *, anew: bool = False) -> BinaryIO:
    """Open a file of the state folder to append to it, or to write it `anew`; made if needed, readable by its owner."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | (os.O_TRUNC if anew else 0)
    opened = os.fdopen(os.open(file, flags, 0o600), "ab")
    os.fchmod(opened.fileno(), 0o600)
    return opened


def tracking_uri(root: Path) -> str:
    """The absolute URI of this checkout's MLflow store: MLflow's own default depends on the current directory."""
    return f"sqlite:///{state_folder(root) / 'mlflow.db'}"


def defaults(root: Path) -> dict[str, str]:
    """Variables that `prepare_environment` sets for the checkout at `root`, except the servers' addresses."""
    here = {
        "CURSUS_ROOT": str(root.resolve()),
        "PREFECT_HOME": str(state_folder(root) / "prefect"),
        "MLFLOW_TRACKING_URI": tracking_uri(root),
        # otherwise every import of torch makes a folder in the temporary directory
        "TORCHINDUCTOR_CACHE_DIR": str(state_folder(root) / "torchinductor"),
    }
    return {**QUIET, **PATIENT, **here, **(importable() if is_installed() else {})}


def importable() -> dict[str, str]:
    """Variables with which processes of the installed package import its tree, and nothing of the current folder: a
    project may have a folder `tasks` of its own."""
    tree, path = str(shipped_folder()), os.environ.get("PYTHONPATH", "")
    paths = [tree, *(one for one in path.split(os.pathsep) if one and one != tree)]
    return {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
