"""The environment of a step (software, hardware, duration): recorded with its result, never part of its identity."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from functools import cache
from pathlib import Path

from pipelines.lineage import hardware
from pipelines.lineage.fingerprint import LIBRARIES
from pipelines.lineage.provenance import Environment
from pipelines.lineage.results import Result
from pipelines.recipe.job import Runtime


def conditions(
    root: Path,
    runtime: Runtime,
    result: Result | None = None,
    began: str = "",
    seconds: float = 0.0,
    smoke: bool = False,
) -> Environment:
    """The environment of a step that ends now, or of one that would be computed here."""
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        packages={name: importlib.metadata.version(name) for name in LIBRARIES},
        commit=commit_of(root),
        started=began,
        seconds=round(seconds, 3),
        resumed_from_step=result.resumed_from_step if result else None,
        compiled=result.compiled if result else None,
        device=(result.device if result else None) or hardware.device_name(runtime.accelerator),
        runtime=runtime.model_dump(mode="json"),
        smoke=smoke,
    )


@cache
def commit_of(root: Path) -> str | None:
    """The commit of the checkout, with `+` if tracked files differ from it; None outside git.

    Documents change no result, and measurements write them; dvc.lock and the pins are written while data is prepared,
    and the tables' digests are in every record.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ":!docs", ":!dvc.lock", ":!data")
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
