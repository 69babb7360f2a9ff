"""Engines: where the units of work of a data step are computed. The choice does not affect the result.

step ──units──▶ run_units ── unfinished units ──▶ engine ──▶ one folder per unit, on a shared file system
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.components import Component

if TYPE_CHECKING:
    from pipelines.corpora.engines.work import WorkUnit


class Engine(Component):
    """Computes units in parallel: `runtime: {engine: …}` in params.yaml."""

    default_name: ClassVar[str] = "processes"

    @abstractmethod
    def compute(self, units: Sequence[WorkUnit], home: Path, at_once: int) -> None:
        """Compute all `units` into `home`, at most `at_once` at a time.

        Raises the exception of the first unit that fails, and DataError when a unit's process was killed and, where the
        engine retries, every retry failed. Other units may or may not be finished.
        """

    @property
    @abstractmethod
    def cores(self) -> int:
        """Maximum number of concurrent units, if memory suffices."""
