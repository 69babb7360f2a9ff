"""`cursus.compare`: executions side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cursus.project import Root, prepared_root
from cursus.runs import Run
from pipelines.errors import CursusError

if TYPE_CHECKING:
    from tasks.records.comparisons import PairedDifference


@dataclass(frozen=True)
class Comparison:
    """Two or more executions; the first is the reference."""

    executions: tuple[str, ...]
    """Their ids."""
    parameters: Mapping[str, Mapping[str, str]]
    """Id → what was requested, as far as it was recorded."""
    scores: Mapping[str, Mapping[str, float]]
    """Id → headline scores with their intervals (`…_low`, `…_high`), and costs."""
    differences: Mapping[str, tuple[PairedDifference, ...]]
    """Id of each other execution → scores of its models minus those of the reference, paired over the same test
    examples, with 95 % intervals and a verdict."""
    unpaired: Mapping[str, str]
    """Id of each other execution that has no paired difference → why."""


def compare(*executions: str | Run, root: Root = None) -> Comparison:
    """Compare executions: results of `cursus.run`, or their ids, or parts of them such as the last four characters.

    Raises CursusError for fewer than two, one that is named twice, and a reference that names none or several.
    """
    folder = prepared_root(root)
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.records.comparisons import find_execution, paired_differences

    if len(executions) < 2:
        raise CursusError("name two executions or more")
    store = Store(store_folder(folder))
    compared = [find_execution(folder, store, _id(one)) for one in executions]
    if len({one.id for one in compared}) < len(compared):
        raise CursusError("an execution is named twice; name different ones")
    first, *others = compared
    differences: dict[str, tuple[PairedDifference, ...]] = {}
    unpaired: dict[str, str] = {}
    for other in others:
        paired, reason = paired_differences(first, other)
        differences[other.id] = tuple(paired)
        if reason is not None:
            unpaired[other.id] = reason
    return Comparison(
        executions=tuple(one.id for one in compared),
        parameters={one.id: one.parameters for one in compared},
        scores={one.id: dict(one.headline.metrics) for one in compared},
        differences=differences,
        unpaired=unpaired,
    )


def _id(execution: str | Run) -> str:
    if isinstance(execution, str):
        return execution
    if execution.report is None:
        raise CursusError("a run without a report cannot be compared")
    return execution.report.parent.name
