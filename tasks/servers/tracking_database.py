"""MLflow's database: created and migrated by one process at a time, and never SQLite on a network file system.

Two processes that open a new database at the same time both migrate it, and one of them fails with `duplicate column`.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlparse

from pipelines.errors import CursusError
from tasks.environment import append_privately, defaults, private_state_folder, tracking_uri

NETWORK = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "beegfs",
    "lustre",
    "gpfs",
    "fuse.sshfs",
    "fuse.glusterfs",
}
"""Network file systems, on which SQLite's locks are unreliable."""
UPGRADE = "import os; from mlflow.cli import cli; cli(['db', 'upgrade', os.environ['MLFLOW_TRACKING_URI']])"
"""The URI may hold a password: it is read from the environment, because every user can read a command line."""


def is_database(uri: str) -> bool:
    """Whether a tracking URI names a database, which this process opens itself."""
    return urlparse(uri).scheme.partition("+")[0] in {"sqlite", "postgresql", "mysql", "mssql"}


def migrate_tracking_store(root: Path, uri: str | None = None) -> None:
    """Create or migrate a tracking database for the installed MLflow, if needed; `uri` None means `.cursus/mlflow.db`.

    Takes 6 s the first time. Call it before anything else opens the database.

    Raises CursusError, naming the log, when the database cannot be migrated.
    """
    from filelock import FileLock

    own = tracking_uri(root)
    uri = uri or own
    state = private_state_folder(root)
    name = "mlflow.db" if uri == own else f"tracking-{hashlib.sha256(uri.encode()).hexdigest()[:12]}"
    marker = state / f"{name}.version"
    with FileLock(state / f"{name}.lock"):
        exists = uri != own or (state / "mlflow.db").exists()
        if exists and marker.exists() and marker.read_text() == version("mlflow"):
            return
        log = state / "logs" / "mlflow-migration.log"
        with append_privately(log) as output:
            result = subprocess.run(
                [sys.executable, "-c", UPGRADE],
                env={**defaults(root), **os.environ, "MLFLOW_TRACKING_URI": uri},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                umask=0o077,
                check=False,
            )
        if result.returncode != 0:
            what = state / "mlflow.db" if uri == own else "the database of MLFLOW_TRACKING_URI"
            raise CursusError(f"{what}: MLflow cannot create or migrate it; the reason is in {log}")
        temporary = marker.with_suffix(".part")
        temporary.write_text(version("mlflow"))
        os.replace(temporary, marker)


def refuse_network_folder(root: Path, uri: str, mounts: str | None = None) -> None:
    """Raise CursusError if `uri` is a SQLite file on a network file system. `mounts` is in the format of
    /proc/mounts."""
    if not uri.startswith("sqlite:"):
        return
    file = Path(uri.removeprefix("sqlite:///"))
    kind = filesystem(file, mounts)
    if kind in NETWORK:
        raise CursusError(
            f"{file} is on a network file system ({kind}), where SQLite loses data: set MLFLOW_TRACKING_URI to a "
            f"PostgreSQL database or an MLflow server, and PREFECT_SERVER_DATABASE_CONNECTION_URL to a database for "
            f"Prefect (docs/servers.md)"
        )


def filesystem(path: Path, mounts: str | None = None) -> str | None:
    """The type of the file system that holds, or will hold, `path`; None where /proc/mounts cannot be read."""
    if mounts is None:
        try:
            mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
    deepest, longest = None, -1
    for line in mounts.splitlines():
        _, point, kind, *_ = line.split()
        point = point.encode().decode("unicode_escape")  # a space is \040
        if path.is_relative_to(point) and len(point) >= longest:
            deepest, longest = kind, len(point)
    return deepest
