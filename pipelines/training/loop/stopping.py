"""Graceful stop: on SIGTERM, from a scheduler or parent process, training finishes its step and writes a checkpoint."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

STATUS = 128 + signal.SIGTERM
"""Exit status of a process that has stopped gracefully."""


_requested = threading.Event()


def request_stop() -> None:
    """Request a stop of the training in this process, as SIGTERM does: for callers that cannot send a signal."""
    _requested.set()


class StopRequest:
    """Context in which SIGTERM requests a stop instead of ending the process.

    Outside the main thread Python cannot handle signals, and only `request_stop` has an effect.
    """

    def __init__(self) -> None:
        self._received = False
        self._previous: Any = None

    @property
    def pending(self) -> bool:
        """Whether a stop has been requested."""
        return self._received or _requested.is_set()

    def __enter__(self) -> Self:
        if self._in_main_thread():
            self._previous = signal.getsignal(signal.SIGTERM)
            self.install_handler()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._in_main_thread():
            signal.signal(signal.SIGTERM, self._previous)

    def install_handler(self) -> None:
        """Handle SIGTERM here, also after other code has replaced the handler (Lightning does when it starts)."""
        if self._in_main_thread():
            signal.signal(signal.SIGTERM, self._receive)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        self._received = True

    @staticmethod
    def _in_main_thread() -> bool:
        return threading.current_thread() is threading.main_thread()
