"""The results of an execution's probe stages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipelines.lineage.results import PROBES
from pipelines.reports.sections import Report


def read_probe_results(report: Report, key: str) -> list[tuple[str, str, Mapping[str, Any]]]:
    """(probe stage, probe, section) of every section that has `key`, in the order of the steps."""
    results = []
    for step in report.execution["steps"]:
        path = report.store / step["fingerprint"] / PROBES
        if step["kind"] == "probe" and path.is_file():
            sections = json.loads(path.read_text(encoding="utf-8"))["sections"]
            results += [(step["stage"], name, section) for name, section in sections.items() if key in section]
    return results
