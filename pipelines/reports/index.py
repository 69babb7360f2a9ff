"""The page that lists all executions, newest first, with links to their reports.

<folder>/index.html                      this page
<folder>/<execution>/execution.json      the source of a row; an execution without this file did not finish
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipelines.reports.elements.axes import duration
from pipelines.reports.elements.table import TABLES, Column, Table, number, text, write_tables
from pipelines.reports.elements.wording import metric_name, score, span
from pipelines.reports.score_tables import EXECUTION, ScoreTable, is_smoke
from pipelines.reports.summary import summary_table

INDEX = "index"


def best_scores(tables: Iterable[ScoreTable]) -> list[dict[str, Any]]:
    """The best model of each score table, by the metric of its verdicts: as much as an index has room for."""
    best_of_each = []
    for table in tables:
        metric = table.record.get("verdict_metric", table.metrics[0])
        models = [row for row in table.rows if not row.baseline and metric in row.scores]
        best = max(models, key=lambda row: float(row.scores[metric]["mean"]), default=None)
        if best is not None:
            estimate = {key: best.scores[metric][key] for key in ("mean", "low", "high")}
            best_of_each.append({"stage": table.stage, "model": best.name, "metric": metric, **estimate})
    return best_of_each


def render_index(folder: Path, store: Path) -> Path:
    """Write the page over the executions in `folder`, from their records and their results in `store`; return its
    path."""
    from pipelines.reports.elements.writing import write_page

    every = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(f"*/{EXECUTION}"), reverse=True)
    ]
    executions = [execution for execution in every if not is_smoke(execution)]
    table = Table(
        "executions",
        "Executions",
        (*COLUMNS, text("best", "Best model"), text("score", "Its score")),
        [_row(execution) for execution in executions],
    )
    trials = [_row(execution) for execution in every if is_smoke(execution)]
    smoke = Table("smoke", "Smoke runs", COLUMNS, trials) if trials else None
    summary = summary_table(executions, store)
    write_tables(INDEX, [shown for shown in (table, summary, smoke) if shown], folder / TABLES)
    values = {"table": table, "summary": summary, "executions": executions, "smoke": smoke}
    return write_page("index.html", values, folder / "index.html")


def _link(identifier: str) -> Markup:
    return Markup('<a href="{id}/report.html" class="mono" style="white-space:nowrap">{id}</a>').format(id=identifier)


COLUMNS = (
    Column("id", "Execution", _link),
    Column("started", "Started", lambda moment: moment[:16].replace("T", " ")),
    text("recipe", "Recipe"),
    text("dataset", "Dataset"),
    number("steps", "Steps"),
    number("computed", "Computed"),
    number("seconds", "Took", duration),
)
"""Columns of every execution, whatever its scores."""


def _row(execution: Mapping[str, Any]) -> dict[str, Any]:
    steps, scores = execution["steps"], execution.get("scores", ())
    return {
        **{key: execution[key] for key in ("id", "started", "recipe", "dataset", "seconds")},
        "steps": len(steps),
        "computed": sum(not step["cached"] for step in steps),
        "best": "; ".join(one["model"] for one in scores) or None,
        "score": "; ".join(_score(one) for one in scores) or None,
    }


def _score(one: Mapping[str, Any]) -> str:
    metric = one["metric"]
    return f"{metric_name(metric)} {score(one['mean'], metric)} ({span(one['low'], one['high'], metric)})"
