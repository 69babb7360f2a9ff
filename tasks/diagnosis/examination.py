"""All checks of `cursus doctor`, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tasks.diagnosis import machine, packages, project
from tasks.diagnosis.check import Check


def examine(root: Path) -> Iterator[Check]:
    """Check the machine, the installation and the project in `root`. Changes nothing."""
    yield packages.python()
    yield packages.versions()
    yield packages.lock(root)
    yield machine.compiler()
    yield machine.disk(root / "data")
    yield machine.git(root)
    yield project.settings(root)
    yield project.permissions(root)
    yield project.ports(root)
