"""Processes of this machine that work for this one, and end when it does."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait

from pipelines.errors import DataError


@contextmanager
def process_pool(
    number: int, doing: str, instead: str, begin: Callable[[], None] | None = None
) -> Iterator[ProcessPoolExecutor]:
    """`number` processes, each of which calls `begin` first; work that nobody has begun is dropped at the end.

    Raises DataError when one of them is killed, which says what they were `doing` and what to do `instead`.
    """
    # a fork would copy the locks of whatever threads run here
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(number, context, initializer=_begin, initargs=(begin,))
    try:
        yield pool
    except BrokenProcessPool:
        raise DataError(f"a process {doing} was killed, most likely for want of memory: {instead}") from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(begin: Callable[[], None] | None) -> None:
    """Leave Ctrl-C to the parent, and end with it: the pool itself would wait for a killed parent for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def end() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
    if begin is not None:
        begin()
