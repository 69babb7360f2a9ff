"""Where a training loop waits for its turn: the child's side of `benchmarks.harness.paced`.

A loop calls `step` when each of its steps begins. Between turns it waits there, having used no processor; so variants that are
slow to start (imports, compilation) start once, and their steady states take turns.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any


class Gate:
    """The loop's end of a pair of pipes: orders come on standard input, answers go where standard output went."""

    def __init__(self) -> None:
        self._orders = os.fdopen(os.dup(0))
        self._answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)  # what libraries print is not an answer
        self._order: dict[str, float] | None = None
        self._steps, self._begun, self._used = 0, 0.0, 0.0

    def step(self) -> None:
        """A step begins. Returns at once in the middle of a turn; at its end answers, and waits for the next."""
        if self._order is None:
            self._answer({"ready": True})
        else:
            self._steps += 1
            seconds = time.perf_counter() - self._begun
            if self._steps < self._order["steps"] or seconds < self._order["seconds"]:
                return
            self._answer({"steps": self._steps, "seconds": seconds, "cpu": time.process_time() - self._used})
        line = self._orders.readline()
        if not line:
            os._exit(0)  # the measurement is over, and nothing of this training is wanted
        self._order, self._steps = json.loads(line), 0
        self._begun, self._used = time.perf_counter(), time.process_time()

    def end(self) -> None:
        """The loop has no more steps."""
        self._answer({"ended": self._steps})

    def _answer(self, message: dict[str, Any]) -> None:
        self._answers.write(json.dumps(message) + "\n")
