"""The newest report of some steps: found by the records of executions alone, without their artifacts."""

from __future__ import annotations

import json
from pathlib import Path

from pipelines.reports.score_tables import EXECUTION, is_smoke


def latest_report(root: Path, fingerprints: set[str], *, smoke: bool = False) -> Path | None:
    """The newest report of an execution that had exactly these steps, and was a `smoke` run or not."""
    for record in sorted((root / "reports").glob(f"*/{EXECUTION}"), reverse=True):
        execution = json.loads(record.read_text(encoding="utf-8"))
        page = record.with_name("report.html")
        same = {step["fingerprint"] for step in execution["steps"]} == fingerprints
        if same and is_smoke(execution) == smoke and page.exists():
            return page
    return None
