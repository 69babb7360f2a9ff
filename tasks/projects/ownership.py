"""Whose project it is: parts of a project are imported, so one that another user has made is not taken unasked.

Commands work on the project around the current folder. Where others may write above it (/tmp, a shared folder), they
could make a project there, whose parts would run with the rights of the user of the command. git refuses such
repositories for the same reason.
"""

from __future__ import annotations

import os
from pathlib import Path

from pipelines.errors import CursusError
from tasks.environment import is_own_project, project_root

EXECUTED = ("params.yaml", "recipes", "parts", "dvc.yaml", "prefect.yaml")
"""Entries of a project that decide what is executed."""


def foreign_entry(root: Path) -> Path | None:
    """The first of the project's folder and `EXECUTED` that belongs neither to this user, nor to root, nor to the user
    of `sudo`; None where there is none."""
    user = os.geteuid()
    trusted = {0, user}
    if user == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        trusted.add(int(os.environ["SUDO_UID"]))
    entries = (root, *(root / name for name in EXECUTED))
    return next((entry for entry in entries if entry.exists() and entry.stat().st_uid not in trusted), None)


def refuse_foreign_project() -> None:
    """Raise CursusError where the project around the current folder is another user's, and CURSUS_ROOT does not name
    it."""
    if os.environ.get("CURSUS_ROOT"):
        return
    try:
        root = project_root()
    except CursusError:
        return  # what needs a project says so
    entry = foreign_entry(root) if is_own_project(root) else None
    if entry is not None:
        raise CursusError(
            f"{entry} belongs to another user, whose parts would run with your rights; if you trust the project, set "
            f"CURSUS_ROOT={root}"
        )
