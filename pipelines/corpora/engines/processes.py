"""Units of work in processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.corpora.engines import Engine
from pipelines.corpora.work import finish
from pipelines.errors import DataError

if TYPE_CHECKING:
    from pipelines.corpora.work import Unit


class Processes(Engine, name="processes"):
    """A process a core of this machine."""

    @property
    def cores(self) -> int:
        return os.cpu_count() or 1

    def compute(self, units: Sequence[Unit], home: Path, at_once: int) -> None:
        # a fork would copy the locks of whatever threads run here
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(min(at_once, len(units)), context, initializer=_obey_parent)
        try:
            for done in [pool.submit(finish, unit, home) for unit in units]:
                done.result()
        except BrokenProcessPool:
            raise DataError(
                f"a process working in {home} was killed, most likely for want of memory: lower runtime.processes in "
                "params.yaml and run again; what is finished is kept"
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _obey_parent() -> None:
    """Leave Ctrl-C to the parent, and end with it: the pool itself would wait for a killed parent for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def end() -> None:
        wait([sentinel])
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
