"""Checks of the machine: a C compiler, free disk space, git."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from pipelines.messages.translation import message
from tasks.diagnosis.check import Check, State

COMPILERS = ("cc", "gcc", "clang")
LEAST_FREE = 2 * 2**30
"""Bytes that the default run writes, with a margin: tables, checkpoints, models, the tracking database."""
COMFORTABLE = 10 * 2**30


def compiler() -> Check:
    """Whether the CPU kernels can be compiled."""
    program = next((path for name in COMPILERS if (path := shutil.which(name))), None)
    if program is None:
        names = ", ".join(COMPILERS)
        text = message("no C compiler ({names}): small networks train half as fast on a CPU", names=names)
        return Check("compiler", State.NOTE, text)
    return Check("compiler", State.OK, program)


def disk(folder: Path) -> Check:
    """Whether the file system of `folder`, or of its closest existing parent, has space for a run."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    text = message("{size:,.1f} GiB are free on the file system of {folder}", size=free / 2**30, folder=existing)
    if free < LEAST_FREE:
        needed = message("{text}, and a run needs {least:.0f}: free some space", text=text, least=LEAST_FREE / 2**30)
        return Check("disk", State.PROBLEM, needed)
    if free < COMFORTABLE:
        line = message("{text}: enough for small models; `cursus store gc` removes what is unused", text=text)
        return Check("disk", State.NOTE, line)
    return Check("disk", State.OK, text)


def git(root: Path) -> Check:
    """Whether the project's commit can be recorded with every model."""
    if shutil.which("git") is None:
        return Check("git", State.NOTE, message("git is not installed: records of models name no commit"))
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if done.returncode:
        text = message("{folder} has no commit: records of models name none (git init, git commit)", folder=root)
        return Check("git", State.NOTE, text)
    return Check("git", State.OK, message("commit {commit}", commit=done.stdout.strip()))
