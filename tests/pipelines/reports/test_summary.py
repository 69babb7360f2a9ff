"""One score over several tasks, from the records of executions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RecipeError
from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.reports.summary import main, summary_table


def execution(
    store: Path,
    number: int,
    dataset: str,
    scores: dict[str, dict[str, float]],
    verdict_on: str,
    task: str | None = None,
) -> dict[str, Any]:
    """An execution of the recipe `tiny` that judged stages: stage → metric → mean."""
    fingerprint = f"{number:0>64x}"
    (store / fingerprint).mkdir(parents=True)
    estimates = [
        {
            "stage": stage,
            "seeds": [0],
            **{m: {"mean": v, "low": v, "high": v, "per_seed": [v]} for m, v in found.items()},
        }
        for stage, found in scores.items()
    ]
    metrics = list(next(iter(scores.values())))
    section = {"metrics": metrics, "verdict_metric": verdict_on, "stages": estimates}
    (store / fingerprint / EVALUATION).write_text(
        json.dumps({"dataset": {"task": task}, "sections": {"scores": section}})
    )
    return {
        "recipe": "tiny",
        "dataset": dataset,
        "started": f"2026-01-{number:02}",
        "steps": [{"stage": "report", "kind": "evaluate", "fingerprint": fingerprint}],
    }


@pytest.fixture
def executions(tmp_path: Path) -> list[dict[str, Any]]:
    store = tmp_path / "store"
    return [
        execution(store, 1, "cola", {"plain": {"mcc": 0.1}, "domain": {"mcc": 0.3}}, "mcc"),
        execution(
            store,
            2,
            "stsb",
            {"plain": {"pearson": 0.8, "spearman": 0.6}, "domain": {"pearson": 0.9, "spearman": 0.7}},
            "pearson",
        ),
        execution(store, 3, "rte", {"plain": {"accuracy": 0.5}}, "accuracy"),
        # judged again, later: this counts
        execution(store, 4, "cola", {"plain": {"mcc": 0.2}, "domain": {"mcc": 0.4}}, "mcc"),
    ]


def test_a_task_of_several_metrics_counts_as_their_mean(executions: list[dict[str, Any]], tmp_path: Path) -> None:
    table = summary_table(reversed(executions), tmp_path / "store", {"stsb": ("pearson", "spearman")})
    assert table is not None
    plain, domain = table.rows
    assert (plain["stage"], domain["stage"]) == ("plain", "domain")
    assert plain["cola"] == 0.2 and plain["stsb"] == pytest.approx(0.7)
    assert plain["mean"] == pytest.approx((0.2 + 0.7 + 0.5) / 3)
    assert domain["mean"] is None, "its mean over two tasks does not compare with one over three"
    assert "rte" not in domain and domain["stsb"] == pytest.approx(0.8)


def test_without_a_choice_the_metric_of_the_verdicts_counts(executions: list[dict[str, Any]], tmp_path: Path) -> None:
    table = summary_table(executions, tmp_path / "store")
    assert table is not None and table.rows[0]["stsb"] == 0.8
    assert summary_table(executions[:1], tmp_path / "store") is None
    with pytest.raises(RecipeError, match="stsb was not evaluated by 'spearmann'. Did you mean 'spearman'"):
        summary_table(executions, tmp_path / "store", {"stsb": ("spearmann",)})


def test_a_person_runs_it_over_a_folder_of_reports(
    executions: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, one in enumerate(executions):
        (tmp_path / "reports" / str(number)).mkdir(parents=True)
        (tmp_path / "reports" / str(number) / "execution.json").write_text(json.dumps(one))
    main([str(tmp_path / "reports"), str(tmp_path / "store"), "stsb=pearson+spearman"])
    header, plain, domain = capsys.readouterr().out.splitlines()
    assert header == "recipe,stage,cola,rte,stsb,mean"
    assert plain.startswith("tiny,plain,0.2,0.5,0.7") and domain.endswith(",")
    with pytest.raises(SystemExit, match="no stage of a recipe was evaluated on two tasks"):
        main([str(tmp_path / "store"), str(tmp_path / "store")])


def test_the_tasks_of_one_dataset_are_tasks_of_their_own(tmp_path: Path) -> None:
    store = tmp_path / "store"
    judged = [
        execution(store, number, "glue", {"share": {"mcc": score}, f"alone_{number}": {"mcc": 0.1}}, "mcc", task)
        for number, (task, score) in enumerate([(None, 0.2), ("rte", 0.4), ("wnli", 0.6)])
    ]
    run = {**judged[0], "steps": [step for one in judged for step in one["steps"]]}
    table = summary_table([run], store)
    assert table is not None
    (row,) = table.rows
    assert (row["stage"], row["glue"], row["glue/rte"], row["glue/wnli"]) == ("share", 0.2, 0.4, 0.6)
    assert row["mean"] == pytest.approx(0.4)
