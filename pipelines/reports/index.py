"""The page that lists all executions, newest first, with links to their reports.

<folder>/index.html, index.zh.html       this page
<folder>/<execution>/execution.json      the source of a row; an execution without this file did not finish
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipelines.messages.translation import LANGUAGES, in_language, localized, message
from pipelines.reports.elements.axes import duration
from pipelines.reports.elements.table import TABLES, Column, Table, number, text, write_tables
from pipelines.reports.elements.wording import metric_name, score, span
from pipelines.reports.score_tables import EXECUTION, ScoreTable, is_smoke
from pipelines.reports.summary import summary_table

INDEX = "index"
REPORT = "report.html"
"""Page of an execution, in its folder."""


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
    """Write the pages over the executions in `folder`, one a language, from their records and their results in `store`;
    return the path of the English one."""
    every = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(f"*/{EXECUTION}"), reverse=True)
    ]
    for name in LANGUAGES:
        with in_language(name):
            _write(every, folder, store)
    return folder / "index.html"


def _write(every: Sequence[Mapping[str, Any]], folder: Path, store: Path) -> None:
    """Write the page in the current language."""
    from pipelines.reports.elements.writing import write_page

    executions = [execution for execution in every if not is_smoke(execution)]
    table = Table(
        "executions",
        message("Executions"),
        (*_columns(folder), text("best", message("Best model")), text("score", message("Its score"))),
        [_row(execution) for execution in executions],
    )
    trials = [_row(execution) for execution in every if is_smoke(execution)]
    smoke = Table("smoke", message("Smoke runs"), _columns(folder), trials) if trials else None
    summary = summary_table(executions, store)
    write_tables(INDEX, [shown for shown in (table, summary, smoke) if shown], folder / TABLES)
    values = {"table": table, "summary": summary, "executions": executions, "smoke": smoke}
    write_page("index.html", values, folder / "index.html")


def _link(identifier: str, folder: Path) -> Markup:
    """The report in the current language; in English, if its execution wrote no other."""
    own = localized(REPORT)
    page = own if (folder / identifier / own).is_file() else REPORT
    return Markup('<a href="{id}/{page}" class="mono" style="white-space:nowrap">{id}</a>').format(
        id=identifier, page=page
    )


def _columns(folder: Path) -> tuple[Column, ...]:
    """Columns of every execution, whatever its scores."""
    return (
        Column("id", message("Execution"), partial(_link, folder=folder)),
        Column("started", message("Started"), lambda moment: moment[:16].replace("T", " ")),
        text("recipe", message("Recipe")),
        text("dataset", message("Dataset")),
        number("steps", message("Steps")),
        number("computed", message("Computed")),
        number("seconds", message("Took"), duration),
    )


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
