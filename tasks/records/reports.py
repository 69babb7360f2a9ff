"""The record and the report of an execution: `reports/<execution>/execution.json`, `report.html` and further pages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.provenance import RECORD, Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.plan import Plan
from pipelines.reports import score_tables as evaluated
from pipelines.reports.anchors import read_anchors
from pipelines.reports.index import best_scores, render_index
from pipelines.reports.score_tables import EXECUTION, ScoreTable
from tasks.datasets.prepared import Prepared
from tasks.records.headlines import Headline


def execution_record(
    identifier: str,
    plan: Plan,
    dataset: str,
    started: str,
    seconds: float,
    computed: dict[str, float],
    mlflow_run_id: str | None,
    prefect_flow_run_id: str | None,
    parameters: Mapping[str, str],
    headline: Headline,
    *,
    smoke: bool = False,
    measurement: bool = False,
) -> dict[str, Any]:
    """The record of an execution: what was requested, every step of the plan, whether it was computed here, and its
    time, and what it is compared by. A `measurement`, of a claim or a lattice, trains models to compare them, none of
    which is its result."""
    return {
        "id": identifier,
        "recipe": plan.recipe.name,
        "paper": plan.recipe.paper,
        "dataset": dataset,
        "smoke": smoke,
        "measurement": measurement,
        "parameters": dict(parameters),
        "headline": headline.record(),
        "started": started,
        "seconds": round(seconds, 1),
        "mlflow_run_id": mlflow_run_id,
        "prefect_flow_run_id": prefect_flow_run_id,
        "steps": [
            {
                "stage": step.name,
                "seed": step.seed,
                "kind": str(step.stage.kind),
                "fingerprint": step.fingerprint,
                "cached": step.fingerprint not in computed,
                "seconds": round(computed.get(step.fingerprint, 0.0), 1),
                "parents": dict(step.parents),
            }
            for step in plan.steps
        ],
    }


def write_report(root: Path, execution: dict[str, Any], store: Store, prepared: Prepared) -> Path:
    """Write the report of an execution and return its first page."""
    from pipelines.reports.report import render_report

    folder = root / "reports" / execution["id"]
    folder.mkdir(parents=True, exist_ok=True)
    records = provenance_records(store, [step["fingerprint"] for step in execution["steps"]])
    page = render_report(
        execution, records, store.root, prepared.summary, prepared.verdict, folder / "report.html", read_anchors(root)
    )
    steps = [(step["stage"], step["fingerprint"]) for step in execution["steps"]]
    scores = best_scores(evaluated.score_tables(evaluated.read_evaluations(store.root, steps)))
    write_text_atomically(
        folder / EXECUTION, json.dumps({**execution, "scores": scores}, indent=1, ensure_ascii=False) + "\n"
    )
    render_index(root / "reports", store.root)
    return page


def provenance_records(store: Store, fingerprints: Iterable[str]) -> dict[str, dict[str, Any]]:
    """The records of those artifacts that are in the store, by fingerprint.

    No other record is read: stores are large.
    """
    folders = [folder for name in fingerprints if ((folder := store.folder(name)) / RECORD).exists()]
    return {folder.name: Provenance.read(folder).model_dump(mode="json") for folder in folders}


def score_tables(store: Store, plan: Plan) -> list[ScoreTable]:
    """The score tables of the plan's evaluate stages; none of stages that have not run."""
    return evaluated.score_tables(
        evaluated.read_evaluations(store.root, [(step.name, step.fingerprint) for step in plan.steps])
    )
