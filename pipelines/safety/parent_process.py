"""The process that started this one: it holds standard input open, and closes it by ending, however it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


def at_callers_end(act: Callable[[], object]) -> None:
    """Call `act` in a thread of its own once standard input is closed. What is written to it before is read and dropped."""

    def wait() -> None:
        # from the descriptor: a thread that waits inside `sys.stdin` makes the interpreter abort when it shuts down
        while os.read(0, 65536):
            pass
        act()

    threading.Thread(target=wait, daemon=True).start()
