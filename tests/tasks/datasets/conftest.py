"""A checkout with a prepared dataset, for the tests of this folder: each leaves it as it found it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tasks.datasets.prepared import prepare
from tests.copied_sources import copy_code
from tests.pipelines.corpora.small_dataset import write_small_dataset
from tests.steps import ROOT


@pytest.fixture(scope="package")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout without git, with the small dataset, prepared once."""
    root = tmp_path_factory.mktemp("checkout")
    for name in ("pipelines", "tasks", "recipes", ".dvc"):
        copy_code(ROOT / name, root / name, "cache", "tmp", "config.local")
    (root / "data" / "pins").mkdir(parents=True)
    for name in ("dvc.yaml", ".dvcignore", "data/pins/waited"):
        shutil.copy(ROOT / name, root / name)
    write_small_dataset(root)
    prepare("small", root)
    return root
