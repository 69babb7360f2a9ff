"""The code that works on a project which is not its checkout."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import tasks
from tasks.stages.conditions import commit_of


def code_of(root: Path) -> dict[str, str | None] | None:
    """Version and commit of cursus, for the record of a measurement in the project `root`; None for the checkout
    itself, whose commit is that of the models."""
    checkout = Path(tasks.__file__).parents[1]
    if root.resolve() == checkout.resolve():
        return None
    return {"version": version("cursus"), "commit": commit_of(checkout)}
