"""Units of work in processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.corpora.engines import Engine
from pipelines.corpora.engines.process_pool import process_pool
from pipelines.corpora.engines.work import finish

if TYPE_CHECKING:
    from pipelines.corpora.engines.work import Unit


class Processes(Engine, name="processes"):
    """A process a core of this machine."""

    @property
    def cores(self) -> int:
        return os.cpu_count() or 1

    def compute(self, units: Sequence[Unit], home: Path, at_once: int) -> None:
        instead = "lower runtime.processes in params.yaml and run again; what is finished is kept"
        with process_pool(min(at_once, len(units)), f"working in {home}", instead) as pool:
            for done in [pool.submit(finish, unit, home) for unit in units]:
                done.result()
