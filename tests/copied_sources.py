"""A copy of this project's sources, to be changed: what git knows or would take, as it is now."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.steps import ROOT


def copy_sources(folder: Path) -> None:
    """Copy them into `folder`."""
    names = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(["git", *names], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())
            (folder / name).chmod((ROOT / name).stat().st_mode)
