"""Memory of a process and its descendants, while it runs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import psutil

SAMPLED_EVERY = 0.25
"""Sampling interval in seconds."""


def sampled(process: subprocess.Popen[bytes]) -> Iterator[int]:
    """Bytes used by the whole process tree, sampled until the process has ended."""
    while process.poll() is None:
        yield sum(map(_proportional, tree(process.pid)))
        time.sleep(SAMPLED_EVERY)


def tree(pid: int) -> list[psutil.Process]:
    """A process and its descendants."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _proportional(process: psutil.Process) -> int:
    """Bytes of memory and swap of a process; shared pages are divided among their processes."""
    try:
        memory = process.memory_full_info()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0
    return int(memory.pss + memory.swap)
