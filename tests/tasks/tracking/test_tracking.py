"""MLflow shows what ran, also rebuilt from the store alone, and never stops a run. Every database is a real one."""

from __future__ import annotations

import json
import logging
import signal
from pathlib import Path

import pytest
from mlflow.entities import Run

from pipelines.lineage.fingerprint import digest_file
from pipelines.lineage.store import Store
from tasks.environment import state_folder
from tasks.tracking.backfill import TrackingBackfill
from tasks.tracking.executions import Tracker
from tasks.tracking.recorded import has_pending
from tasks.tracking.recorder import Recorder
from tasks.tracking.tracked_values import TrackedStep, points
from tests.tasks.conftest import Builder, executing

LINES = [
    {"step": 10, "tokens": 1000, "train/loss": 5.0, "lr": 0.001},
    {"step": 20, "tokens": 2000, "train/loss": 4.0, "lr": 0.0},
]


def runs_by_name(tracker: Tracker) -> dict[str, Run]:
    """All runs, by step. A search does not fill in the models that a run used, so each is fetched."""
    found = tracker.recorder.client.search_runs(tracker.recorder.experiments())
    return {step_of(run): tracker.recorder.client.get_run(run.info.run_id) for run in found}


def statuses(recorder: Recorder) -> dict[str, str]:
    """Step, or name of an execution, to status."""
    runs = recorder.client.search_runs(recorder.experiments())
    return {step_of(run): run.info.status for run in runs}


def step_of(run: Run) -> str:
    """`classify@1` of a step, the whole name of an execution."""
    return str(run.info.run_name).partition(" · ")[0]


def curve(recorder: Recorder, run: str) -> list[tuple[int, float]]:
    return [(point.step, point.value) for point in recorder.client.get_metric_history(run, "train/loss")]


def test_an_execution_is_told_whole(root: Path, builder: Builder) -> None:
    general = builder.step(
        "general",
        "pretrain",
        data={"general": builder.table("general", ["one", "two"])},
        metrics={"validation/loss": 4.2},
        settings={"objective": [{"name": "masked_lm", "weight": 1.0}]},
    )
    tuned = builder.step(
        "classify",
        "finetune",
        seed=1,
        parents={"start": general.fingerprint},
        data={"train": builder.table("train", ["a"]), "test": builder.table("test", ["b", "c", "d"])},
        metrics={"validation/accuracy": 0.7},
    )
    tracker = Tracker(root)
    tracker.begin_execution("e1", "bert", "docs", [{"stage": "general", "seed": 0}], Store(root / "empty"))
    for artifact in (general, tuned):
        tracker.begin_step(TrackedStep.of(artifact.provenance))
        tracker.log_metrics(artifact.fingerprint, LINES[:1])
        tracker.log_metrics(artifact.fingerprint, LINES[1:])
        tracker.finish_step(artifact)
    page = root / "reports" / "e1" / "report.html"
    (page.parent / "tables").mkdir(parents=True)
    page.write_text("<p>done</p>", encoding="utf-8")
    (page.parent / "tables" / "report-scores.csv").write_text("model\n", encoding="utf-8")
    tracker.log_report(page)
    tracker.finish_execution("FINISHED", {"classify/accuracy": 0.7})
    assert tracker.failure is None
    assert not has_pending(root)
    parent = tracker.run_id

    client = tracker.recorder.client
    assert parent is not None
    execution = client.get_run(parent)
    assert execution.info.status == "FINISHED"
    assert execution.data.metrics == {"classify/accuracy": 0.7}
    assert {entry.path for entry in client.list_artifacts(parent)} == {"plan.json", "report.html", "tables"}
    assert client.get_experiment(execution.info.experiment_id).name == "docs"
    runs = runs_by_name(tracker)
    assert set(runs) == {"bert e1", "general", "classify@1"}
    first, second = runs["general"], runs["classify@1"]
    assert first.outputs is not None and second.inputs is not None and second.outputs is not None
    assert first.data.tags["mlflow.parentRunId"] == parent
    assert first.data.tags["cursus.fingerprint"] == general.fingerprint
    assert second.data.tags["cursus.parent.start"] == general.fingerprint
    assert (first.info.run_name, second.info.run_name) == ("general · regime e1", "classify@1 · regime e1")
    assert (first.data.params["objective"], first.data.params["head"]) == ("masked_lm", "none")
    assert first.data.params.keys() == second.data.params.keys(), "every stage has the same keys"
    settings = json.loads(Path(client.download_artifacts(first.info.run_id, "settings.json")).read_text())
    assert settings["objective"] == [{"name": "masked_lm", "weight": 1.0}]
    assert first.data.metrics["validation/loss"] == 4.2
    assert first.data.metrics["system/cpu_utilization_percentage"] >= 0
    history = client.get_metric_history(first.info.run_id, "train/loss")
    assert [(point.step, point.value) for point in history] == [(10, 5.0), (20, 4.0)]
    assert [point.value for point in client.get_metric_history(first.info.run_id, "tokens")] == [1000, 2000]

    inputs = {(one.dataset.name, one.tags[0].value): one.dataset for one in second.inputs.dataset_inputs}
    assert set(inputs) == {("docs/train", "training"), ("docs/test", "test")}
    assert inputs["docs/test", "test"].digest == tuned.provenance.data["test"].digest
    assert json.loads(inputs["docs/test", "test"].profile or "") == {"num_rows": 3}
    (made,) = first.outputs.model_outputs
    (used,) = second.inputs.model_inputs
    assert used.model_id == made.model_id, "the model of one stage is the input of the next"
    model = client.get_logged_model(made.model_id)
    assert str(model.status) == "READY"
    assert model.source_run_id == first.info.run_id
    (made_next,) = second.outputs.model_outputs
    of_next = client.get_logged_model(made_next.model_id).tags
    assert of_next["cursus.parent_model.start"] == model.model_id
    assert f"[general](#/experiments/{model.experiment_id}/models/{model.model_id})" in of_next["mlflow.note.content"]
    assert {metric.key: metric.value for metric in model.metrics or []}["validation/loss"] == 4.2
    logged = Path(model.artifact_location.removeprefix("file://")) / "model.safetensors"
    assert digest_file(logged) == general.provenance.files["model.safetensors"].sha256
    assert logged.samefile(general.folder / "model.safetensors"), "a model's bytes are on the disk once"


def test_a_cache_hit_is_a_run_with_the_numbers_and_the_model_of_the_first(root: Path, builder: Builder) -> None:
    general = builder.step("general", "pretrain", metrics={"validation/loss": 4.2})
    tracker = Tracker(root)
    tracker.begin_execution("e1", "bert", "docs", [], builder.store)
    tracker.link_cached(general)
    tracker.finish_execution("FINISHED", {})
    again = Tracker(root)
    again.begin_execution("e2", "bert", "docs", [], builder.store)
    again.link_cached(general)
    again.finish_execution("FINISHED", {})
    client = tracker.recorder.client
    cached = client.search_runs(tracker.recorder.experiments(), "tags.`cursus.cached` = 'true'")
    second, first = (client.get_run(run.info.run_id) for run in cached)
    assert first.info.status == second.info.status == "FINISHED"
    assert first.data.tags["mlflow.parentRunId"] == tracker.run_id
    assert first.data.metrics["validation/loss"] == 4.2
    assert first.data.tags["cursus.original_run"] == second.data.tags["cursus.original_run"]
    original = client.get_run(first.data.tags["cursus.original_run"])
    assert first.outputs is not None and original.outputs is not None
    assert [one.model_id for one in first.outputs.model_outputs] == [
        one.model_id for one in original.outputs.model_outputs
    ]
    assert len(client.search_logged_models(tracker.recorder.experiments())) == 1


def test_a_database_that_was_lost_is_rebuilt_from_the_store(root: Path, builder: Builder) -> None:
    made = builder.regime()
    tracker = Tracker(root)
    projection = TrackingBackfill(tracker.recorder, builder.store)
    assert projection.record_missing() == len(made)
    assert projection.record_missing() == 0
    client = tracker.recorder.client
    runs = runs_by_name(tracker)
    assert set(runs) == set(made)
    small = runs["small"]
    assert small.inputs is not None
    models = {model.name: model.model_id for model in client.search_logged_models(tracker.recorder.experiments())}
    assert {one.model_id for one in small.inputs.model_inputs} == {models["task"], models["classify-0"]}
    assert small.info.end_time - small.info.start_time == 95_000
    assert [point.value for point in client.get_metric_history(small.info.run_id, "train/loss")] == [5.0, 4.0]
    assert [entry.path for entry in client.list_artifacts(runs["report"].info.run_id)] == [
        "evaluation.json",
        "settings.json",
    ]


def test_a_stage_may_have_a_name_that_mlflow_allows_for_no_model(root: Path, builder: Builder) -> None:
    made = builder.step("classify.10%", "finetune", data={"train": builder.table("train", ["a"])})
    recorder = Recorder(root)
    assert TrackingBackfill(recorder, builder.store).record_missing() == 1
    assert recorder.model_of(made.fingerprint) is not None


def test_what_was_half_told_is_completed(root: Path, builder: Builder) -> None:
    general = builder.step("general", "pretrain", data={"general": builder.table("general", ["one"])})
    recorder = Recorder(root)
    half = recorder.open_run(TrackedStep.of(general.provenance), more={"cursus.projected": "true"})
    recorder.log_points(half, points(LINES[:1], 1, 2), {})
    assert TrackingBackfill(recorder, builder.store).record_missing() == 1
    assert recorder.finished_run(general.fingerprint) == half
    assert curve(recorder, half) == [(10, 5.0), (20, 4.0)]
    assert TrackingBackfill(recorder, builder.store).record_missing() == 0


def test_runs_of_a_killed_execution_are_closed_by_the_next(root: Path) -> None:
    with executing(root, "killed") as child:
        meanwhile = Tracker(root)
        meanwhile.begin_execution("meanwhile", "bert", "docs", [], Store(root / "empty"))
        meanwhile.finish_execution("FINISHED", {})
        assert statuses(meanwhile.recorder) == {
            "bert killed": "RUNNING",
            "general": "RUNNING",
            "bert meanwhile": "FINISHED",
        }
        child.send_signal(signal.SIGKILL)
        child.wait()
    following = Tracker(root)
    following.begin_execution("next", "bert", "docs", [], Store(root / "empty"))
    following.finish_execution("FINISHED", {})
    found = statuses(following.recorder)
    assert (found["bert killed"], found["general"], found["bert next"]) == ("KILLED", "KILLED", "FINISHED")
    assert not has_pending(root)


def test_a_failed_step_says_why_and_the_others_of_its_execution_were_killed(root: Path) -> None:
    tracker = Tracker(root)
    tracker.begin_execution("e1", "bert", "docs", [], Store(root / "empty"))
    for name in ("general", "domain"):
        tracker.begin_step(TrackedStep(name, "bert", name, "pretrain", 0, {}, {}, {}, name))
    tracker.fail_step("general", "stage general ended without a result")
    tracker.finish_execution("FAILED", {})
    runs = runs_by_name(tracker)
    assert runs["general"].data.tags["cursus.error"] == "stage general ended without a result"
    assert {name: run.info.status for name, run in runs.items()} == {
        "bert e1": "FAILED",
        "general": "FAILED",
        "domain": "KILLED",
    }


def test_a_step_that_was_interrupted_goes_on_in_its_own_run(root: Path, builder: Builder) -> None:
    general = builder.step("general", "pretrain", metrics={"validation/loss": 4.2})
    step = TrackedStep.of(general.provenance)
    first = Tracker(root)
    first.begin_execution("e1", "bert", "docs", [], Store(root / "empty"))
    first.begin_step(step)
    first.log_metrics(general.fingerprint, LINES[:1])
    first.fail_step(general.fingerprint, "StageError: killed by SIGKILL")
    first.finish_execution("FAILED", {})
    run = runs_by_name(first)["general"].info.run_id
    second = Tracker(root)
    second.begin_execution("e2", "bert", "docs", [], Store(root / "empty"))
    second.begin_step(step)
    second.log_metrics(general.fingerprint, LINES)  # a resumed job tells its lines from the beginning
    second.finish_step(general)
    second.finish_execution("FINISHED", {})
    told = second.recorder.client.get_run(run)
    assert told.info.status == "FINISHED" and told.data.tags["mlflow.parentRunId"] == second.run_id
    assert told.data.tags["cursus.attempts"] == "e1, e2" and "cursus.error" not in told.data.tags
    assert curve(second.recorder, run) == [(10, 5.0), (20, 4.0)], "no gap, no repeat"
    third = Tracker(root)
    third.begin_execution("e3", "bert", "docs", [], Store(root / "empty"))
    third.begin_step(step)
    third.finish_execution("KILLED", {})
    attempts = third.recorder.client.search_runs(third.recorder.experiments(), "tags.`cursus.stage` = 'general'")
    assert len(attempts) == 2, "what is finished is not opened"


def test_a_broken_database_is_one_warning_and_no_error(
    root: Path, builder: Builder, caplog: pytest.LogCaptureFixture
) -> None:
    general = builder.step("general", "pretrain")
    (state_folder(root) / "mlflow.db").write_bytes(b"this is no database" * 1000)
    tracker = Tracker(root)
    with caplog.at_level(logging.WARNING, logger="cursus.tracking"):
        tracker.begin_execution("e1", "bert", "docs", [], builder.store)
        tracker.begin_step(TrackedStep.of(general.provenance))
        tracker.log_metrics(general.fingerprint, LINES)
        tracker.finish_step(general)
        tracker.link_cached(general)
        assert tracker.register(builder.store, general.fingerprint, None, {}) == {}
        tracker.finish_execution("FINISHED", {})
    assert tracker.run_id is None
    assert [record.message.partition(" (")[0] for record in caplog.records if record.name == "cursus.tracking"] == [
        "MLflow cannot be brought up to date with earlier runs",
        "MLflow has stopped recording",
        "MLflow has not recorded everything",
    ]
    assert has_pending(root), "the next run may find a database that works"
