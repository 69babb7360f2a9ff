"""Detect the end of the parent process: it holds standard input open, which closes when the parent ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


def on_parent_exit(act: Callable[[], object]) -> None:
    """Call `act` in a separate thread once standard input is closed. Input before that is read and discarded."""

    def wait() -> None:
        # reads the descriptor: a thread that waits inside `sys.stdin` makes the interpreter abort when it shuts down
        while os.read(0, 65536):
            pass
        act()

    threading.Thread(target=wait, daemon=True).start()
