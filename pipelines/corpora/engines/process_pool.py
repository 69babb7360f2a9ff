"""A pool of local processes that end with their parent."""

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
    number: int, activity: str, advice: str, initializer: Callable[[], None] | None = None
) -> Iterator[ProcessPoolExecutor]:
    """A pool of `number` processes, each of which calls `initializer` first; pending work is cancelled at the end.

    DataError when a process is killed; its message names the `activity` and gives the `advice`.
    """
    # fork would copy locks held by other threads
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(number, context, initializer=_initialise, initargs=(initializer,))
    try:
        yield pool
    except BrokenProcessPool:
        raise DataError(
            f"a process {activity} was killed, most likely because it ran out of memory: {advice}"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _initialise(initializer: Callable[[], None] | None) -> None:
    """Leave Ctrl-C to the parent and exit when it ends; otherwise workers would wait forever for a killed parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def end() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
    if initializer is not None:
        initializer()
