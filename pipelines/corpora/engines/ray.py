"""Units of work on a Ray cluster, by Ray Data: for corpora that one machine would take too long over."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines import errors
from pipelines.corpora.engines import Engine, ray_cluster
from pipelines.corpora.engines.memory import CHILD
from pipelines.corpora.engines.work import finish
from pipelines.errors import CursusError, DataError

if TYPE_CHECKING:
    from pipelines.corpora.engines.work import Unit


class Ray(Engine, name="ray"):
    """A running Ray cluster, by its explicit address. Nodes share the checkout, its environment and `data/`.

    Each unit reserves a processor and what `runtime.memory` counts for a process. A unit whose worker or node is lost is
    computed again by another.
    """

    address: ray_cluster.Address = Field("", validate_default=True)
    """`host:port` of its head. There is no default: Ray would join whatever cluster was started last on this machine."""

    @property
    def cores(self) -> int:
        return sys.maxsize  # the cluster itself says how many fit

    def compute(self, units: Sequence[Unit], home: Path, at_once: int) -> None:
        _joined(self.address)
        import ray.data
        from ray.exceptions import RayError

        settings = ray.data.DataContext.get_current()
        settings.enable_progress_bars = settings.print_on_execution_start = False
        rows = [{"number": number} for number in range(len(units))]
        told = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
            Finishing(tuple(units), home.resolve()), num_cpus=1, memory=CHILD, concurrency=min(at_once, len(units))
        )
        try:
            for row in told.iter_rows():
                if row["kind"]:
                    raise _error(row["kind"], row["message"])
        except RayError as lost:
            raise DataError(
                f"units of work in {home} could not be finished on the Ray cluster at {self.address}, also when they were started "
                f"again: {' '.join(str(lost).split())[:300]}; what is finished is kept"
            ) from None


@dataclass(frozen=True)
class Finishing:
    """Finishes the unit of a row's number, and tells of the error that a user can mend."""

    units: tuple[Unit, ...]
    home: Path

    def __call__(self, row: dict[str, Any]) -> dict[str, str]:
        try:
            finish(self.units[row["number"]], self.home)
        except (CursusError, OSError) as error:
            return {"kind": type(error).__name__, "message": str(error)}
        return {"kind": "", "message": ""}


def _error(kind: str, message: str) -> Exception:
    """What a unit ended with elsewhere."""
    mistake: type[CursusError] | None = getattr(errors, kind, None)
    return OSError(message) if mistake is None else mistake(message)


def _joined(address: str) -> None:
    """Be a driver of the cluster, as long as this process lives: a step has many tables."""
    import ray

    if not ray.is_initialized():
        ray_cluster.join(address, {}, show_logs=False)
        logging.getLogger("ray.data").setLevel(logging.WARNING)
