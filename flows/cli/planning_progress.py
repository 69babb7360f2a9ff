"""How far planning is, for a person who waits for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

PATIENCE, INTERVAL = 1.0, 5.0
"""Seconds without a word, and between two lines in what is no terminal."""


@contextmanager
def planning_progress(console: Console, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[str], None]]:
    """Yield what receives sentences about how far planning is. After a second they are shown: in a terminal in one
    line, which disappears at the end; elsewhere one every few seconds."""
    began = clock()
    shown = began + PATIENCE - INTERVAL
    status = console.status("")

    def show(sentence: str) -> None:
        nonlocal shown
        if clock() - began < PATIENCE:
            return
        if console.is_terminal:
            status.update(sentence)
            status.start()
        elif clock() - shown >= INTERVAL:
            shown = clock()
            console.print(sentence, markup=False)

    try:
        yield show
    finally:
        status.stop()
