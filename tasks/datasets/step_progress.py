"""Progress of the steps of a dataset, from the output of DVC: when a step starts, and every few seconds after it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from pipelines.corpora.steps.step import PROGRESS
from tasks.datasets.dvc_process import OCCUPIED

_STAGE = re.compile(r"^Running stage '(\w+)@")


class StepProgress:
    """Reads lines of DVC, and calls `on_step` with the name of each step that starts, and how far it is."""

    def __init__(self, on_step: Callable[[str], None]) -> None:
        self._on_step = on_step
        self._step, self._began, self._done = "", 0.0, ""

    def read(self, line: str) -> None:
        """A line of DVC, or of the step that it runs."""
        if started := _STAGE.match(line):
            self._step, self._began, self._done = started[1], time.monotonic(), ""
            self._on_step(self._step)
        elif line.startswith(PROGRESS):
            self._done = f", {line.removeprefix(PROGRESS).strip()}"
            self.silent()
        elif line == OCCUPIED:
            self._on_step(line)

    def silent(self) -> None:
        """Nothing was written for a while."""
        if self._step:
            self._on_step(f"{self._step}: {time.monotonic() - self._began:.0f} s{self._done}")
