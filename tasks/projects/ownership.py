"""The owner of a project: one that another user has put where everyone may write is not taken unasked.

Commands work on the project around the current folder. In /tmp, every user could make one for all folders below, whose
parts would run with the rights of the user of the command. Elsewhere, every user who may write into the folder of
a project is trusted with it: projects of a team, and folders that are mounted into a container, belong to several.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pipelines.errors import CursusError
from tasks.environment import is_own_project, project_root

EXECUTED = ("params.yaml", "recipes", "parts", "dvc.yaml", "prefect.yaml")
"""Entries of a project that decide what is executed."""


def foreign_entry(root: Path) -> Path | None:
    """The first of `EXECUTED` in a folder that everyone may write to that belongs neither to this user, nor to root,
    nor to the user of `sudo`; None where there is none."""
    if not root.stat().st_mode & stat.S_IWOTH:
        return None
    user = os.geteuid()
    trusted = {0, user}
    if user == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        trusted.add(int(os.environ["SUDO_UID"]))
    entries = (root / name for name in EXECUTED)
    return next((entry for entry in entries if entry.exists() and entry.stat().st_uid not in trusted), None)


def refuse_foreign_project() -> None:
    """Raise CursusError where the project around the current folder lies in a folder that everyone may write to and is
    another user's, and CURSUS_ROOT does not name it."""
    if os.environ.get("CURSUS_ROOT"):
        return
    try:
        root = project_root()
    except CursusError:
        return  # what needs a project says so
    entry = foreign_entry(root) if is_own_project(root) else None
    if entry is not None:
        raise CursusError(
            f"{entry} belongs to another user, and everyone may write to {root}: its parts would run with your rights; "
            f"if you trust the project, set CURSUS_ROOT={root}"
        )
