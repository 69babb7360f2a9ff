"""Being asked to stop: SIGTERM, from a scheduler that preempts or a caller that ends, lets a step finish and a checkpoint be
written."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

STATUS = 128 + signal.SIGTERM
"""Exit status of a process that has stopped so."""


_asked = threading.Event()


def ask() -> None:
    """Ask what trains in this process to stop, as SIGTERM does: for those who cannot send it one."""
    _asked.set()


class Stop:
    """While it is entered, SIGTERM is noted instead of ending the process. In a thread only `ask` is heard,
    as Python has it."""

    def __init__(self) -> None:
        self._noted = False
        self._before: Any = None

    @property
    def asked(self) -> bool:
        return self._noted or _asked.is_set()

    def __enter__(self) -> Self:
        if self._main():
            self._before = signal.getsignal(signal.SIGTERM)
            self.listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._main():
            signal.signal(signal.SIGTERM, self._before)

    def listen(self) -> None:
        """Hear the signal, even where something else has put itself in its place (Lightning does when it starts)."""
        if self._main():
            signal.signal(signal.SIGTERM, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._noted = True

    @staticmethod
    def _main() -> bool:
        return threading.current_thread() is threading.main_thread()
