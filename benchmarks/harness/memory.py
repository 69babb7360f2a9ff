"""Memory of a process and of all that it has started, while it runs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

import psutil

SAMPLED_EVERY = 0.25
"""Seconds between two looks."""


def sampled(process: subprocess.Popen[bytes]) -> Iterator[int]:
    """Bytes of its whole tree at one moment after another, until it has ended."""
    while process.poll() is None:
        yield sum(map(_proportional, tree(process.pid)))
        time.sleep(SAMPLED_EVERY)


def tree(pid: int) -> list[psutil.Process]:
    """A process and all that it has started."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _proportional(process: psutil.Process) -> int:
    """Bytes of memory and swap of a process; pages that several processes share are divided among them."""
    try:
        memory = process.memory_full_info()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0
    return int(memory.pss + memory.swap)
