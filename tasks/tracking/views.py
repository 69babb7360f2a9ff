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
CHART_SECTION = "cursus-cost"


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
    charts = _charts(metrics)
    scores = [f"{side}/{metric}" for metric in metrics for side in ("best", "served", "baseline")]
    ends = {f"best/{metric}": [f"best/{metric}_low", f"best/{metric}_high"] for metric in metrics}
    columns = [
        *_columns("params", ["recipe", "variants", "seeds", "budgets"]),
        *_columns("metrics", [key for score in scores for key in (score, *ends.get(score, []))]),
        *_columns("metrics", COSTS),
        "attributes.`Dataset`",
    ]
    validations = [f"validation/{metric.rpartition('/')[2]}" for metric in metrics]
    of_stages = [
        *_columns("params", ["recipe", "stage", "seed", "objective", "learning_rate", "budget_tokens"]),
        *_columns("metrics", [*dict.fromkeys([*validations, "validation/loss"])]),
        *_columns("metrics", ["final/seconds", "final/tokens", "final/parameters"]),
    ]
    newest = {"orderByKey": "attributes.start_time", "orderByAsc": False}
    return {
        EXECUTIONS: _state(executions, columns, newest, charts),
        STAGES: _state(stages, of_stages, {"orderByKey": "params.`stage`", "orderByAsc": True}, {}),
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
        # curves of stages that read different batches compare over tokens, not over steps
        "globalLineChartConfig": {"xAxisKey": "metric", "lineSmoothness": 0, "selectedXAxisMetricKey": "tokens"},
        **charts,
    }


def _charts(metrics: Iterable[str]) -> dict[str, Any]:
    """Scatter plots of the best score against seconds and tokens, and of the served one against bytes."""
    pairs = [(f"{'served' if cost == 'cost/bytes' else 'best'}/{metric}", cost) for metric in metrics for cost in COSTS]
    cards = [
        {
            "uuid": f"cursus-{number}",
            "type": "SCATTER",
            "runsCountToCompare": 100,
            "metricSectionId": CHART_SECTION,
            "deleted": False,
            "isGenerated": False,
            "displayName": f"{score} against {cost}",
            "xaxis": {"key": cost, "type": "METRIC"},
            "yaxis": {"key": score, "type": "METRIC"},
        }
        for number, (score, cost) in enumerate(pairs)
    ]
    if not cards:
        return {}
    section = {
        "uuid": CHART_SECTION,
        "name": NAMES[COST],
        "display": True,
        "isReordered": True,
        "deleted": False,
        "isGenerated": False,
    }
    return {"compareRunCharts": cards, "compareRunSections": [section]}


def _columns(kind: str, keys: Iterable[str]) -> list[str]:
    return [f"{kind}.`{key}`" for key in keys]


def _state_of(tag: str | None) -> Any:
    """The state of a saved view; None of what is no view."""
    try:
        return json.loads(json.loads(tag or "{}")["state"])
    except (KeyError, TypeError, ValueError):
        return None
