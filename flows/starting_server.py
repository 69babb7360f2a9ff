"""A temporary Prefect server that dies while it starts: Prefect itself asks it for two minutes whether it is ready."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

SERVER = "prefect.server.api.server"
"""The module that starts it, and that it runs."""
LOOK_SECONDS = 0.5


def when_server_dies_starting(begun: Callable[[], bool], act: Callable[[], object]) -> None:
    """Call `act` in a thread of its own if the server that this process starts has ended before `begun` is true."""

    def watch() -> None:
        ended = 0
        # twice: one that found its port taken is started once more by Prefect, at another
        while not begun() and ended < 2:
            time.sleep(LOOK_SECONDS)
            ended = ended + 1 if _has_ended() else 0
        if not begun():
            act()

    threading.Thread(target=watch, daemon=True).start()


def _has_ended() -> bool:
    if (module := sys.modules.get(SERVER)) is None or not hasattr(module, "SubprocessASGIServer"):
        return False  # not imported yet, or not to its end
    started = [server.server_process for server in module.SubprocessASGIServer._instances.values()]
    return any(process is not None and process.poll() is not None for process in started)
