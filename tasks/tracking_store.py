"""MLflow's database of this checkout: created and migrated by one process at a time.

Two processes that touch a fresh SQLite file together both migrate it, and one of them dies with `duplicate column`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from pipelines.errors import CursusError
from tasks.environment import defaults, state_folder, tracking_uri


def migrate_tracking_store(root: Path) -> None:
    """Make `.cursus/mlflow.db` ready for the installed MLflow; at once where it already is.

    Takes 6 s the first time. Call it before anything else opens the database; `MLFLOW_TRACKING_URI` may name another
    store, which is then its owner's business.

    Raises CursusError where the database cannot be migrated, naming the log.
    """
    from filelock import FileLock

    state = state_folder(root)
    state.mkdir(parents=True, exist_ok=True)
    marker = state / "mlflow.db.version"
    with FileLock(state / "mlflow.db.lock"):
        if (state / "mlflow.db").exists() and marker.exists() and marker.read_text() == version("mlflow"):
            return
        log = state / "logs" / "mlflow-migration.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            result = subprocess.run(
                [sys.executable, "-m", "mlflow", "db", "upgrade", tracking_uri(root)],
                env={**defaults(root), **os.environ},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if result.returncode != 0:
            raise CursusError(f"{state / 'mlflow.db'}: MLflow cannot create or migrate it. The reason is in {log}.")
        aside = marker.with_suffix(".part")
        aside.write_text(version("mlflow"))
        os.replace(aside, marker)
