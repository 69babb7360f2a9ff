"""Copies of this project's sources, to be changed: what git knows or would take, or some folders of code."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.steps import ROOT

BEING_WRITTEN = ("*.pyc.*", ".*.tree.json-*")
"""Files that another process is about to rename."""


def copy_code(source: Path, target: Path, *left_out: str) -> None:
    """Copy a folder of code without the names `left_out`, and with what is kept in `__pycache__`.

    Python takes bytecode by the time and size of a file, which a copy keeps, and identities take syntax trees by its
    content (pipelines/lineage/source.py). Each process that reads a copy would spend seconds on making them anew.
    """
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*BEING_WRITTEN, *left_out))


def copy_sources(folder: Path) -> None:
    """Copy them into `folder`."""
    names = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(["git", *names], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
            (folder / name).chmod((ROOT / name).stat().st_mode)
