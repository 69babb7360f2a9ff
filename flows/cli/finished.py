"""Check whether an execution is complete: every step in the store, its report written, and recorded in MLflow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.lineage.store import Store
    from pipelines.recipe.plan import Plan


def finished_report(root: Path, store: Store, plan: Plan, *, smoke: bool) -> Path | None:
    """The newest report of exactly the steps of `plan`, all of which are in the store, made by a `smoke` run or not;
    None if the execution is incomplete.

    Without a report, the previous run was killed between its last stage and its end. Records pending entries in MLflow;
    after a full disk, even the pending entries may be missing, and such an execution is repeated.
    """
    from tasks.records.latest_report import latest_report
    from tasks.tracking.executions import record_pending_executions
    from tasks.tracking.recorded import has_pending, is_recorded

    report = latest_report(root, {step.fingerprint for step in plan.steps}, smoke=smoke)
    if report is None:
        return None
    record_pending_executions(root, store)
    return report if is_recorded(root, report.parent.name) or has_pending(root) else None
