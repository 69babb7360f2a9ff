"""Units of work in local processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.corpora.engines import Engine
from pipelines.corpora.engines.process_pool import process_pool
from pipelines.corpora.engines.work import finish_unit, report_units

if TYPE_CHECKING:
    from pipelines.corpora.engines.work import WorkUnit


class ProcessesEngine(Engine, name="processes"):
    """Local processes, one per core."""

    @property
    def cores(self) -> int:
        return os.cpu_count() or 1

    def compute(self, units: Sequence[WorkUnit], home: Path, at_once: int) -> None:
        instead = "lower runtime.processes in params.yaml and run again; finished units are kept"
        with process_pool(min(at_once, len(units)), f"computing units in {home}", instead) as pool:
            for number, done in enumerate([pool.submit(finish_unit, unit, home) for unit in units], 1):
                done.result()
                report_units(number, len(units))
