"""Whether an execution was carried to its end: every step in the store, its report written, MLflow told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.lineage.store import Store
    from pipelines.recipe.plan import Plan


def finished_report(root: Path, store: Store, plan: Plan) -> Path | None:
    """The newest report of exactly the steps of `plan`, all of which are in the store; None where something is left to do.

    Without a report the run before was killed between its last stage and its end. Tells MLflow what it was not told; where
    a disk was full, even that may not have been written down, and such an execution is carried out once more.
    """
    from tasks.records.reports import latest_report
    from tasks.tracking.executions import tell_what_is_left
    from tasks.tracking.journal import settled, untold

    report = latest_report(root, {step.fingerprint for step in plan.steps})
    if report is None:
        return None
    tell_what_is_left(root, store)
    return report if settled(root, report.parent.name) or untold(root) else None
