"""What every checkout of a test would make anew, in seconds each: empty databases of Prefect and MLflow, kernels.

`cursus run` from nothing is tested by the first run of tests/flows, whose checkout is not seeded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.lineage.results import COMPILED
from pipelines.lineage.store import Store
from tasks.environment import private_state_folder
from tasks.servers.tracking_database import migrate_tracking_store
from tests.made_once import made_once
from tests.shared_folders import share_compiled


def seed(root: Path, factory: pytest.TempPathFactory) -> None:
    """Put into the checkout `root`, which has no state yet, what a first run would have left besides its results."""
    migrated = made_once(factory, "tracking", migrate_tracking_store)
    state = private_state_folder(root)
    for file in private_state_folder(migrated).glob("mlflow.db*"):
        shutil.copy2(file, state)
    seed_prefect(state / "prefect", factory)
    share_compiled(Store(root / "data" / "store").tokens / COMPILED)


def seed_prefect(home: Path, factory: pytest.TempPathFactory) -> None:
    """Copy the empty database of a Prefect server into its folder `home`."""
    home.mkdir(mode=0o700, exist_ok=True)
    for file in made_once(factory, "prefect-database", _migrate_prefect).glob("prefect.db*"):
        shutil.copy2(file, home)


def _migrate_prefect(home: Path) -> None:
    command = [sys.executable, "-m", "prefect", "server", "database", "upgrade", "--yes"]
    environment = {**os.environ, "PREFECT_HOME": str(home)}
    subprocess.run(command, env=environment, check=True, capture_output=True, umask=0o077)
