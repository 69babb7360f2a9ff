"""What the run of an execution holds, so that two of them can be compared: parameters, the dataset, models."""

from __future__ import annotations

import json
from pathlib import Path

from pipelines.lineage.store import Store
from tasks.tracking.executions import Tracker, catch_up
from tasks.tracking.stage_parameters import READ, stage_parameters
from tasks.tracking.tracked_values import TrackedStep
from tests.steps import SHIPPED, shipped
from tests.tasks.conftest import Builder

PARAMETERS = {"dataset": "docs", "recipe": "bert", "variants": "hour, minilm", "smoke": "false", "commit": ""}


def test_an_execution_has_parameters_its_dataset_and_the_names_of_its_models(root: Path, builder: Builder) -> None:
    tables = {"train": builder.table("train", ["a", "b"]), "test": builder.table("test", ["c"])}
    digests = []
    for name in ("e1", "e2"):
        tracker = Tracker(root)
        nothing = Store(root / "empty")
        tracker.begin_execution(f"now-{name}", "bert", "docs", [], nothing, parameters=PARAMETERS, data=tables)
        tracker.finish_execution("FINISHED", {"best/accuracy": 0.7}, {"best": "classify", "metrics": "accuracy"})
        assert tracker.failure is None and tracker.run_id is not None
        run = tracker.recorder.client.get_run(tracker.run_id)
        assert run.info.run_name == f"bert hour minilm now-{name}"
        assert run.data.params == {key: value for key, value in PARAMETERS.items() if value}
        assert run.data.metrics == {"best/accuracy": 0.7}
        assert run.data.tags["cursus.kind"] == "execution" and run.data.tags["cursus.best"] == "classify"
        assert run.inputs is not None
        (given,) = run.inputs.dataset_inputs
        assert given.dataset.name == "docs" and json.loads(given.dataset.source) == {"uri": "data/prepared/docs"}
        assert json.loads(given.dataset.profile or "") == {"num_rows": 3, "train": 2, "test": 1}
        digests.append(given.dataset.digest)
        tables["test"] = builder.table("test", ["d"])
    assert digests[0] != digests[1], "other test examples are another dataset"


def test_stages_of_all_recipes_have_the_same_parameters() -> None:
    every = [(name, *stage) for name in SHIPPED.names() for stage in shipped(name).stages.items()]
    for recipe, name, stage in every:
        settings = stage.model_dump(mode="json")
        step = TrackedStep("f" * 64, recipe, name, stage.kind.value, 0, settings, {}, {}, name)
        found = {param.key: param.value for param in stage_parameters(step)}
        assert tuple(found) == ("recipe", "stage", "kind", "seed", "dataset", *READ)
        if stage.trains:
            assert found["learning_rate"] == f"{stage.optimizer.lr:g}" and found["objective"] != "none"
        elif stage.kind.judges:
            assert found["learning_rate"] == found["batch"] == "none", "a default that means nothing"
    assert len({stage.kind for _, _, stage in every}) > 4


def test_a_database_that_was_lost_has_the_executions_again(root: Path, builder: Builder) -> None:
    """From their records in reports/: parameters, scores, the report, and the steps that they computed."""
    general = builder.step("general", "pretrain")
    tuned = builder.step("classify", "finetune", parents={"start": general.fingerprint})
    headline = {"metrics": {"best/accuracy": 0.7}, "models": {"best": "classify"}, "decisive": ["accuracy"]}
    steps = [
        {"stage": one.provenance.stage, "fingerprint": one.fingerprint, "cached": one is general}
        for one in (general, tuned)
    ]
    record = {
        "id": "now-3f2a", "recipe": "regime", "dataset": "docs", "smoke": False, "seconds": 9.5,
        "started": "2026-03-01T10:00:00+00:00", "parameters": PARAMETERS, "headline": headline, "steps": steps,
    }  # fmt: skip
    folder = root / "reports" / "now-3f2a"
    folder.mkdir(parents=True)
    (folder / "execution.json").write_text(json.dumps(record), encoding="utf-8")
    (folder / "report.html").write_text("<p>done</p>", encoding="utf-8")
    tracker = Tracker(root)
    for _ in range(2):
        catch_up(tracker.recorder, builder.store)
    client = tracker.recorder.client
    runs = {run.info.run_name: run for run in client.search_runs(tracker.recorder.experiments())}
    assert set(runs) == {
        "regime hour minilm now-3f2a", "classify@0 · regime 3f2a", f"general · regime {general.fingerprint[:8]}",
    }  # fmt: skip
    execution = runs["regime hour minilm now-3f2a"]
    assert (execution.data.params["recipe"], execution.data.metrics) == ("bert", {"best/accuracy": 0.7})
    assert execution.info.end_time - execution.info.start_time == 9500 and execution.info.status == "FINISHED"
    assert runs["classify@0 · regime 3f2a"].data.tags["mlflow.parentRunId"] == execution.info.run_id
    assert "reports/now-3f2a/report.html" in execution.data.tags["mlflow.note.content"]
