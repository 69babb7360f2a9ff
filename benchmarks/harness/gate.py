"""The gate at which a training loop waits for its turn: the child's side of `benchmarks.harness.paced`.

A loop calls `step` at the start of each of its steps. Between turns it blocks there without using the processor; so
variants with a slow start-up (imports, compilation) start once, and their steady states take turns.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any


class Gate:
    """The loop's end of a pair of pipes: orders arrive on standard input, replies go to the original standard
    output."""

    def __init__(self) -> None:
        self._orders = os.fdopen(os.dup(0))
        self._answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)  # output of libraries must not mix with replies
        self._order: dict[str, float] | None = None
        self._steps, self._begun, self._used = 0, 0.0, 0.0

    def step(self) -> None:
        """Call at the start of each step: returns at once during a turn; at its end, replies and waits for the next
        turn."""
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
            os._exit(0)  # the measurement is over, and the rest of the training is not needed
        self._order, self._steps = json.loads(line), 0
        self._begun, self._used = time.perf_counter(), time.process_time()

    def end(self) -> None:
        """Call after the loop's last step."""
        self._answer({"ended": self._steps})

    def _answer(self, message: dict[str, Any]) -> None:
        self._answers.write(json.dumps(message) + "\n")
