"""Engines: where the units of work of a data step are computed. None of them changes what is written.

step ──units──▶ worked ── those not finished yet ──▶ engine ──▶ one folder a unit, on a file system that all see
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.components import Component

if TYPE_CHECKING:
    from pipelines.corpora.engines.work import Unit


class Engine(Component):
    """What computes units side by side: `runtime: {engine: …}` in params.yaml."""

    usual: ClassVar[str] = "processes"

    @abstractmethod
    def compute(self, units: Sequence[Unit], home: Path, at_once: int) -> None:
        """Finish all `units` in `home`, at most `at_once` at a time.

        Raises what the first unit that fails raises, and DataError when a unit's process was killed and starting it again
        did not help. Other units are finished or left undone.
        """

    @property
    @abstractmethod
    def cores(self) -> int:
        """How many units it could compute at once, if there is memory for them."""
