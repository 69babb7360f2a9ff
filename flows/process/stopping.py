"""Stopping a command: Ctrl-C and SIGTERM, once in order, a second time at once."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import psutil

from pipelines.messages.translation import message, translatable

INTERRUPTED = 130
"""Exit status after Ctrl-C."""
TERMINATED = 128 + signal.SIGTERM
"""Exit status after SIGTERM."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
STOPPING = translatable(
    "stopping: training writes a checkpoint first; the same signal again (Ctrl-C, SIGTERM) ends the run at once"
)


class Terminated(KeyboardInterrupt):
    """SIGTERM, which stops a command like Ctrl-C."""


@contextmanager
def terminable() -> Iterator[None]:
    """Context in which SIGTERM raises `Terminated`, unless its default action was replaced before."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        if before == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _raise)
    except ValueError:  # outside the main thread there are no handlers
        before = None
    try:
        yield
    finally:
        if before == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _raise(number: int, frame: FrameType | None) -> None:
    raise Terminated


def run_flow(start: Callable[[], subprocess.Popen[bytes]]) -> int:
    """Start the process of a flow, which calls `accept_signals`, and return its exit status.

    The first Ctrl-C or SIGTERM stops it in order, a second one kills it with all its descendants; either way,
    KeyboardInterrupt or `Terminated` is raised when it has ended. No exception is raised before that: it could leave
    the process running. Outside the main thread, which alone receives signals, none is handled.
    """
    received: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        if len(received) == 1:
            print(message(STOPPING), file=sys.stderr, flush=True)
            flow.send_signal(signal.SIGINT)
        else:
            kill_tree(flow.pid)

    # held back until both are ready for them, the process (which inherits the mask) and its caller
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        flow = start()
        handled = STOP_SIGNALS if threading.current_thread() is threading.main_thread() else ()
        before = {number: signal.signal(number, stop) for number in handled}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        status = flow.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if flow.stdin is not None:
        flow.stdin.close()
    if received:
        raise Terminated if received[0] == signal.SIGTERM else KeyboardInterrupt
    return status


def kill_tree(pid: int) -> None:
    """Kill the process `pid` and all its descendants."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        for process in (*root.children(recursive=True), root):
            with suppress(psutil.NoSuchProcess):
                process.kill()


def accept_signals() -> None:
    """In the process of a flow: receive the signals that were held back when it was started.

    From here on, the first SIGINT raises KeyboardInterrupt in the main thread, and further ones do nothing: they
    would end what the first one stops in order."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
