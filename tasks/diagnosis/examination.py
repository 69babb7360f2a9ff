"""All checks of `cursus doctor`, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines.messages.translation import message
from pipelines.shipped import shipped_folder
from tasks.diagnosis import machine, packages, project
from tasks.diagnosis.check import Check, State


def examine(root: Path | None) -> Iterator[Check]:
    """Check the machine, the installation, and the project in `root` if there is one. Changes nothing."""
    yield packages.python()
    yield packages.versions()
    yield packages.lock(root if root is not None and (root / packages.LOCK).is_file() else shipped_folder())
    yield machine.compiler()
    yield machine.disk(root / "data" if root is not None else Path.cwd())
    if root is None:
        text = message("this folder is in no project: `cursus init my-project` makes one")
        yield Check("project", State.NOTE, text)
        return
    yield machine.git(root)
    yield project.settings(root)
    yield project.permissions(root)
    yield project.ports(root)
