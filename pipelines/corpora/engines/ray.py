"""Units of work on a Ray cluster, through Ray Data: for corpora that take one machine too long."""

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
from pipelines.corpora.engines.work import finish_unit, report_units
from pipelines.errors import CursusError, DataError

if TYPE_CHECKING:
    from pipelines.corpora.engines.work import WorkUnit


class RayEngine(Engine, name="ray"):
    """A running Ray cluster at an explicit address. Its nodes share the checkout, its environment and `data/`.

    Each unit reserves one CPU and the memory that `runtime.memory` counts per process. A unit whose worker or node is
    lost is computed again on another.
    """

    address: ray_cluster.Address = Field("", validate_default=True)
    """`host:port` of the head node. There is no default: Ray would join the cluster last started on this machine."""

    @property
    def cores(self) -> int:
        return sys.maxsize  # the cluster limits it

    def compute(self, units: Sequence[WorkUnit], home: Path, at_once: int) -> None:
        _join(self.address)
        import ray.data
        from ray.exceptions import RayError

        settings = ray.data.DataContext.get_current()
        settings.enable_progress_bars = settings.print_on_execution_start = False
        rows = [{"number": number} for number in range(len(units))]
        results = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
            FinishUnit(tuple(units), home.resolve()), num_cpus=1, memory=CHILD, concurrency=min(at_once, len(units))
        )
        try:
            for number, row in enumerate(results.iter_rows(), 1):
                if row["kind"]:
                    raise _error(row["kind"], row["message"])
                report_units(number, len(units))
        except RayError as lost:
            raise DataError(
                f"units of work in {home} could not be finished on the Ray cluster at {self.address}, even after "
                "retries: "
                f"{' '.join(str(lost).split())[:300]}; finished units are kept"
            ) from None


@dataclass(frozen=True)
class FinishUnit:
    """Computes the unit with a row's number; an error that the user can fix is returned as a value."""

    units: tuple[WorkUnit, ...]
    home: Path

    def __call__(self, row: dict[str, Any]) -> dict[str, str]:
        try:
            finish_unit(self.units[row["number"]], self.home)
        except (CursusError, OSError) as error:
            return {"kind": type(error).__name__, "message": str(error)}
        return {"kind": "", "message": ""}


def _error(kind: str, message: str) -> Exception:
    """Recreate the exception of a remote unit."""
    error: type[CursusError] | None = getattr(errors, kind, None)
    return OSError(message) if error is None else error(message)


def _join(address: str) -> None:
    """Join the cluster as a driver for the life of this process: a step has many tables."""
    import ray

    if not ray.is_initialized():
        ray_cluster.join(address, {}, show_logs=False)
        logging.getLogger("ray.data").setLevel(logging.WARNING)
