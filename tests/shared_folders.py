"""Folders for what tests make once and share: they outlive a test, and not the session."""

from __future__ import annotations

import atexit
import os
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

_HOME = TemporaryDirectory(prefix="cursus-tests-")
atexit.register(_HOME.cleanup)
_COMPILED = "CURSUS_TEST_COMPILED"
"""The folder of what accelerators compile, for this process and those that it starts: workers, and their jobs."""
os.environ.setdefault(_COMPILED, mkdtemp(prefix="compiled-", dir=_HOME.name))


def compiled_folder() -> Path:
    """Where accelerators find what any test of this session has compiled: to compile takes seconds of every job."""
    return Path(os.environ[_COMPILED])


def share_compiled(folder: Path) -> None:
    """Let `folder`, where the accelerators of a job or a store look, be `compiled_folder`."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not folder.exists():
        folder.symlink_to(compiled_folder())


def shared_folder(name: str) -> Path:
    """A new, empty folder, removed when the session ends."""
    return Path(mkdtemp(prefix=f"{name}-", dir=_HOME.name))
