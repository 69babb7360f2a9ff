"""The views that executions save for MLflow's UI: columns and charts of what they are compared by."""

from __future__ import annotations

import json
from pathlib import Path

from pipelines.lineage.store import Store
from tasks.tracking.executions import Tracker
from tasks.tracking.views import states


def test_an_execution_saves_views_of_its_metrics_and_keeps_those_of_others(root: Path) -> None:
    def views(name: str, metrics: str) -> dict[str, dict[str, object]]:
        tracker = Tracker(root)
        tracker.begin_execution(name, "bert", "docs", [], Store(root / "empty"))
        tracker.finish_execution("FINISHED", {"best/x": 1.0}, {"metrics": metrics})
        assert tracker.failure is None
        experiment = tracker.recorder.client.get_experiment_by_name("docs")
        assert experiment is not None
        return {
            key.removeprefix("mlflow.sharedViewState."): json.loads(value)
            for key, value in experiment.tags.items()
            if key.startswith("mlflow.sharedViewState.")
        }

    first = views("e1", "accuracy")
    assert {view["name"] for view in first.values()} == {"Executions", "Stages", "Score against cost"}
    state = json.loads(str(first["executions"]["state"]))
    assert {"metrics.`best/accuracy_low`", "metrics.`cost/tokens`", "params.`variants`"} <= {*state["selectedColumns"]}
    assert state["searchFilter"] == "tags.`cursus.kind` = 'execution'"
    assert views("e2", "accuracy") == first, "nothing has changed, so nobody's columns are reset"
    both = json.loads(str(views("e3", "bits_per_byte, rte/accuracy")["executions"]["state"]))
    for metric in ("bits_per_byte", "rte/accuracy", "accuracy"):
        assert f"metrics.`best/{metric}`" in both["selectedColumns"]


def test_charts_are_of_scores_against_each_cost() -> None:
    charts = states(["accuracy"])["score-against-cost"]["compareRunCharts"]
    assert [(chart["xaxis"]["key"], chart["yaxis"]["key"]) for chart in charts] == [
        ("cost/seconds", "best/accuracy"),
        ("cost/tokens", "best/accuracy"),
        ("cost/bytes", "served/accuracy"),
    ]
    curves = states(["accuracy"])["stages"]["compareRunCharts"]
    assert [chart["metricKey"] for chart in curves] == ["train/loss", "validation/loss", "validation/accuracy"]
    assert {chart["selectedXAxisMetricKey"] for chart in curves} == {"tokens"}
    assert all(len(json.dumps(state)) < 15_000 for state in states([f"task-{n}/accuracy" for n in range(30)]).values())
    assert "compareRunCharts" not in states([])["executions"]
