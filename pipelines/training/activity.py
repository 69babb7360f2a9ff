"""What a job is doing where it writes no metrics: one line in a file of its folder, which its launcher follows."""

from __future__ import annotations

from pathlib import Path

from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.results import ACTIVITY, SCRATCH
from pipelines.training.ranks import process_group


class Activity:
    """Called with a line, replaces the last one. Of several ranks the first writes."""

    def __init__(self, out: Path) -> None:
        self._path = out / SCRATCH / ACTIVITY

    def __call__(self, line: str) -> None:
        if process_group.rank() == 0:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_text_atomically(self._path, line)
