"""One score over several tasks, by GLUE's rule: the mean over tasks, a task of several metrics counting as their mean.

python -m pipelines.reports.summary reports data/store                    # CSV of the systems with two tasks or more
python -m pipelines.reports.summary reports data/store rte=accuracy stsb_en=pearson+spearman

Wang et al. 2018, arXiv:1804.07461, §3. A system is a stage of a recipe; its score on a task is the mean over seeds.
Means over different tasks do not compare, so a system that lacks a task has no mean.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.messages.translation import message
from pipelines.reports.elements.axes import percent
from pipelines.reports.elements.table import Table, number, text
from pipelines.reports.score_tables import EXECUTION, ScoreTable, read_evaluations, score_tables

Metrics = Mapping[str, Sequence[str]]
"""Task → the metrics that count there; tasks without an entry use the metric of their verdicts."""


@dataclass(frozen=True)
class TaskScore:
    """The score of a system on one task."""

    recipe: str
    stage: str
    task: str
    """The dataset; of one with several tasks, `dataset/task`, but for the main task."""
    score: float
    metrics: tuple[str, ...]


def summary_table(executions: Iterable[Mapping[str, Any]], store: Path, metrics: Metrics | None = None) -> Table | None:
    """A table with a row per system, a column per task, and the mean; None when no system was evaluated on two tasks.

    `executions` are `execution.json` documents; the latest of each recipe and task counts. Raises RecipeError for a
    metric that was not measured on its task.
    """
    scores = {
        (one.recipe, one.stage, one.task): one
        for execution in sorted(executions, key=lambda execution: str(execution["started"]))
        for one in task_scores(execution, store, metrics or {})
    }
    systems: dict[tuple[str, str], dict[str, float]] = {}
    for (recipe, stage, task), one in scores.items():
        systems.setdefault((recipe, stage), {})[task] = one.score
    several = {system: by_task for system, by_task in systems.items() if len(by_task) > 1}
    if not several:
        return None
    tasks = sorted({task for by_task in several.values() for task in by_task})
    rows = [
        {
            "recipe": recipe,
            "stage": stage,
            **by_task,
            "mean": sum(by_task.values()) / len(tasks) if len(by_task) == len(tasks) else None,
        }
        for (recipe, stage), by_task in several.items()
    ]
    rows.sort(key=lambda row: (row["mean"] is None, -float(row["mean"] or 0), row["recipe"], row["stage"]))
    return Table(
        "summary",
        message("Over several tasks"),
        (
            text("recipe", message("Recipe")),
            text("stage", message("Model")),
            *(number(task, f"{task}, {_names(scores.values(), task)}", percent) for task in tasks),
            number("mean", message("Mean of tasks"), percent),
        ),
        rows,
    )


def task_scores(execution: Mapping[str, Any], store: Path, metrics: Metrics) -> list[TaskScore]:
    """The scores of every stage that `execution` evaluated, one a task; its first score table of a task counts."""
    dataset = str(execution["dataset"])
    steps = [(step["stage"], step["fingerprint"]) for step in execution["steps"] if step["kind"] == "evaluate"]
    scores: dict[tuple[str, str], TaskScore] = {}
    for table in score_tables(read_evaluations(store, steps)):
        if table.prompted:
            continue
        task = dataset if table.task is None else f"{dataset}/{table.task}"
        counted = tuple(metrics.get(task) or (table.record.get("verdict_metric", table.metrics[0]),))
        _refuse_unknown(counted, table, task)
        for row in table.rows:
            if not row.baseline and (row.name, task) not in scores and all(one in row.scores for one in counted):
                mean = sum(float(row.scores[metric]["mean"]) for metric in counted) / len(counted)
                scores[row.name, task] = TaskScore(execution["recipe"], row.name, task, mean, counted)
    return list(scores.values())


def _refuse_unknown(counted: Sequence[str], table: ScoreTable, task: str) -> None:
    unknown = next((metric for metric in counted if metric not in table.metrics), None)
    if unknown is not None:
        raise RecipeError(f"{task} was not evaluated by {unknown!r}.{did_you_mean(unknown, table.metrics)}")


def _names(scores: Iterable[TaskScore], task: str) -> str:
    return " + ".join(next(one.metrics for one in scores if one.task == task))


def main(arguments: Sequence[str]) -> None:
    """Print the table of the executions in a folder of reports, whose results are in a store, as CSV."""
    if len(arguments) < 2 or not all("=" in chosen for chosen in arguments[2:]):
        raise SystemExit("usage: python -m pipelines.reports.summary REPORTS STORE [task=metric+metric …]")
    reports, store = map(Path, arguments[:2])
    executions = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(reports.glob(f"*/{EXECUTION}"))]
    chosen = {name: tuple(listed.split("+")) for name, _, listed in (one.partition("=") for one in arguments[2:])}
    try:
        table = summary_table(executions, store, chosen)
    except RecipeError as error:
        raise SystemExit(str(error)) from None
    if table is None:
        raise SystemExit(f"{reports}: no stage of a recipe was evaluated on two tasks or more")
    print(table.csv(), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
