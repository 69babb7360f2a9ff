"""Saved views of an experiment in MLflow's UI (menu *Views*); the first is what opens (`tasks/servers/mlflow_ui.js`).

    Executions             a row an execution: parameters, scores with interval ends, cost; charts of score against cost
    Stages                 a row a computed stage of any recipe, by stage; curves over tokens
    Score against cost     the executions' charts alone

MLflow 3.17 keeps a saved view as a tag of the experiment: its name, and the state of the page as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tasks.records.headlines import METRICS
from tasks.tracking.journal import now
from tasks.tracking.recorder import Recorder
from tasks.tracking.run_names import EXECUTION

TAG = "mlflow.sharedViewState."
"""Beginning of the tags in which MLflow keeps saved views."""
EXECUTIONS, STAGES, COST = "executions", "stages", "score-against-cost"
NAMES = {EXECUTIONS: "Executions", STAGES: "Stages", COST: "Score against cost"}
COSTS = ("cost/seconds", "cost/tokens", "cost/bytes")
MOST_METRICS = 4
"""Tasks whose metrics have columns and charts."""
NEWEST = 50
"""Executions whose metrics have columns."""
FIRST_COLUMNS = {"attributes.`Run Name`": 300, "runDateAndNestInfo": 150}
"""Columns that every view has → their width in pixels."""
EDGE, CHARACTER = 40, 8
"""Pixels beside the title of a column, and for each of its characters."""
OWN_SECTION = "cursus"
"""Id of the section with the charts of a view."""
FOLDED = (
    *("best", "served", "baseline", "cost", "run", "final", "train", "validation"),
    *("Model metrics", "System metrics"),
)
"""Sections that MLflow makes for metrics by their names: folded below ours."""
OVER_TOKENS = {"xAxisKey": "metric", "selectedXAxisMetricKey": "tokens"}
"""Horizontal axis of curves: stages that read batches of different sizes compare over tokens, not over steps."""


def save_views(recorder: Recorder, experiment: str) -> None:
    """Save the views of an experiment whose columns its executions have given reason to change. Raises what MLflow
    raises."""
    client = recorder.client
    runs = client.search_runs([experiment], f"tags.`cursus.kind` = '{EXECUTION}'", max_results=NEWEST)
    named = (name for run in runs for name in run.data.tags.get(f"cursus.{METRICS}", "").split(", ") if name)
    metrics = list(dict.fromkeys(named))
    tags = client.get_experiment(experiment).tags
    for view, state in states(metrics).items():
        if _state_of(tags.get(f"{TAG}{view}")) != state:
            moment = now()
            envelope = {"name": NAMES[view], "createdAt": moment, "updatedAt": moment, "state": json.dumps(state)}
            client.set_experiment_tag(experiment, f"{TAG}{view}", json.dumps(envelope))


def states(metrics: Sequence[str]) -> dict[str, dict[str, Any]]:
    """View → the state of the page, for executions that are compared by `metrics` (`accuracy`, `rte/accuracy`)."""
    metrics = metrics[:MOST_METRICS]
    executions = f"tags.`cursus.kind` = '{EXECUTION}'"
    stages = f"tags.`cursus.kind` != '{EXECUTION}' and tags.`cursus.cached` = 'false'"
    charts = _section("Score against cost", _scatter_plots(metrics))
    scores = [f"{side}/{metric}" for metric in metrics for side in ("best", "served", "baseline")]
    ends = {f"best/{metric}": [f"best/{metric}_low", f"best/{metric}_high"] for metric in metrics}
    columns = [
        *_columns("params", ["variants"]),
        *_columns("metrics", [key for score in scores for key in (score, *ends.get(score, []))]),
        *_columns("metrics", COSTS),
        *_columns("params", ["recipe", "seeds", "budgets"]),
        "attributes.`Dataset`",
    ]
    validations = list(dict.fromkeys(f"validation/{metric.rpartition('/')[2]}" for metric in metrics))
    of_stages = [
        *_columns("params", ["recipe", "stage", "seed", "objective", "learning_rate", "budget_tokens"]),
        *_columns("metrics", [*validations, "validation/loss"]),
        *_columns("metrics", ["final/seconds", "final/tokens", "final/parameters"]),
    ]
    curves = _section("Curves over tokens", _curves(["train/loss", "validation/loss", *validations]))
    newest = {"orderByKey": "attributes.start_time", "orderByAsc": False}
    return {
        EXECUTIONS: _state(executions, columns, newest, charts),
        STAGES: _state(stages, of_stages, {"orderByKey": "params.`stage`", "orderByAsc": True}, curves),
        COST: _state(executions, columns, newest, charts),
    }


def _state(
    condition: str, columns: Sequence[str], order: Mapping[str, Any], charts: Mapping[str, Any]
) -> dict[str, Any]:
    """The state of the page, in MLflow's own keys."""
    return {
        "searchFilter": condition,
        **order,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(columns),
        "columnOrder": [*FIRST_COLUMNS, *columns],
        "columnWidths": {**FIRST_COLUMNS, **{column: _width(column) for column in columns}},
        "globalLineChartConfig": {**OVER_TOKENS, "lineSmoothness": 0},
        **charts,
    }


def _section(title: str, charts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Charts above those that MLflow makes by itself."""
    if not charts:
        return {}
    common = {"runsCountToCompare": 100, "metricSectionId": OWN_SECTION, "deleted": False, "isGenerated": False}
    cards = [{"uuid": f"{OWN_SECTION}-{number}", **common, **chart} for number, chart in enumerate(charts)]
    titles = {OWN_SECTION: title, **{f"{OWN_SECTION}-{name}": name for name in FOLDED}}
    sections = [
        {
            "uuid": uuid,
            "name": name,
            "display": uuid == OWN_SECTION,
            "isReordered": True,
            "deleted": False,
            "isGenerated": uuid != OWN_SECTION,
        }
        for uuid, name in titles.items()
    ]
    return {"compareRunCharts": cards, "compareRunSections": sections, "isAccordionReordered": True}


def _scatter_plots(metrics: Iterable[str]) -> list[dict[str, Any]]:
    """The best score against seconds and tokens, and the served one against bytes."""
    pairs = [(f"{'served' if cost == 'cost/bytes' else 'best'}/{metric}", cost) for metric in metrics for cost in COSTS]
    return [
        {"type": "SCATTER", "xaxis": {"key": cost, "type": "METRIC"}, "yaxis": {"key": score, "type": "METRIC"}}
        for score, cost in pairs
    ]


def _curves(metrics: Iterable[str]) -> list[dict[str, Any]]:
    common = {"type": "LINE", "lineSmoothness": 0, "xAxisScaleType": "linear", "scaleType": "linear", **OVER_TOKENS}
    ends: dict[str, Any] = {"range": {}, "yAxisKey": "metric", "yAxisExpressions": [], "useGlobalXaxisKey": True}
    return [{**common, **ends, "metricKey": metric, "selectedMetricKeys": [metric]} for metric in metrics]


def _columns(kind: str, keys: Iterable[str]) -> list[str]:
    return [f"{kind}.`{key}`" for key in keys]


def _width(column: str) -> int:
    """Pixels in which the title of a column is shown whole."""
    return EDGE + CHARACTER * len(column.partition("`")[2])


def _state_of(tag: str | None) -> Any:
    """The state of a saved view; None of what is no view."""
    try:
        return json.loads(json.loads(tag or "{}")["state"])
    except (KeyError, TypeError, ValueError):
        return None
