"""What every checkout of a test would make anew, in seconds each: MLflow's empty database, compiled kernels.

`cursus run` from nothing is tested by the first run of tests/flows, whose checkout is not seeded.
"""

from __future__ import annotations

import shutil
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
    share_compiled(Store(root / "data" / "store").tokens / COMPILED)
