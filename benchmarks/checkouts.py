"""Fresh checkouts that commands are timed in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = (
    "dvc.yaml",
    "params.yaml",
    "prefect.yaml",
    "recipes",
    "flows",
    "tasks",
    "pipelines",
    "pyproject.toml",
    "requirements.lock",
)
"""Files that a checkout needs to run; everything else is generated."""
SETTINGS_OF = ("PREFECT_", "MLFLOW_", "CURSUS_", "OMP_", "MALLOC_", "MKL_", "KMP_", "GOMP_")
"""Prefixes of environment variables that the measuring process may have and a user's shell does not."""


def users_shell() -> dict[str, str]:
    """The environment without the variables of `SETTINGS_OF`."""
    return {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS_OF)}


def checkout(with_data: bool) -> Path:
    """Create a fresh checkout in a temporary folder; `with_data` prepares the default dataset."""
    folder = Path(tempfile.mkdtemp(prefix="cursus-bench-"))
    for name in (*COPIED, ".dvc/config", ".dvcignore"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, folder / name)
    if with_data:
        cursus(folder, "data")
    return folder


def cursus(folder: Path, *words: str, code: Path | None = None) -> float:
    """Seconds that one command takes in `folder`, with its own code or that of another checkout. Raises
    CalledProcessError, its output shown, when it fails."""
    environment = {**users_shell(), "CURSUS_ROOT": str(folder), "PYTHONPATH": str(code or folder)}
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "flows.cli.app", *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()
    return time.monotonic() - begun
