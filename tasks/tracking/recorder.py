"""How a step becomes runs and models in MLflow. Everything here raises what MLflow raises: `tasks.tracking.executions` survives it."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse
from urllib.request import url2pathname

from pipelines.lineage.provenance import Provenance
from tasks.environment import state_folder, tracking_uri
from tasks.servers.tracking_database import is_database, migrate_tracking_store
from tasks.tracking.tracked_values import TrackedStep, dataset_inputs, final_numbers, parameters, points

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Run


HTTP_SERVER_ERROR = 500
REFUSED = re.compile(r"""[/:.%"']""")
"""What MLflow allows in no model's name, and a recipe may have in a stage's."""


class Recorder:
    """The MLflow of the checkout at `root`, or the one that MLFLOW_TRACKING_URI names. Building one opens nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.uri = os.environ.get("MLFLOW_TRACKING_URI") or tracking_uri(self.root)
        self._models: dict[str, str] = {}

    @cached_property
    def client(self) -> MlflowClient:
        """The open connection. Takes 6 s where the database has to be created first."""
        # whoever calls decides whether to ask again; MLflow itself would ask for minutes
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        if is_database(self.uri):
            migrate_tracking_store(self.root, self.uri)
        import mlflow

        # MLflow announces on the console what it is about to do, and prints a traceback for a database that is locked
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
        # `models:/m-…` is looked up through the global setting, whatever a client was built with
        mlflow.set_tracking_uri(self.uri)
        return mlflow.MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)

    def is_away(self, error: Exception) -> bool:
        """Whether MLflow may answer later what it answered with `error` now: a server or database that does not."""
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import OperationalError

        if isinstance(error, MlflowException):
            untyped: Any = error
            return int(untyped.get_http_status_code()) >= HTTP_SERVER_ERROR
        return isinstance(error, (OSError, OperationalError))

    def advice(self, failure: str) -> str:
        """What to do about a failure that comes back; empty where there is nothing."""
        if self.uri.startswith("sqlite:") and "locked" in failure:
            return (
                f" {self.uri.removeprefix('sqlite:///')} has been locked by another process for more than 20 s: "
                "where many write at once, use PostgreSQL (docs/servers.md)."
            )
        return ""

    def experiment(self, dataset: str) -> str:
        """The id of the experiment named after the dataset, made where it is not there yet."""
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(dataset)
        if found is not None:
            return str(found.experiment_id)
        # MLflow's own default is relative to the current directory; a server decides for itself
        here = is_database(self.uri)
        location = (state_folder(self.root) / "mlartifacts" / dataset).as_uri() if here else None
        # without the kind, MLflow's UI opens on its pages for prompts and agents
        kind = {"mlflow.experimentKind": "custom_model_development"}
        try:
            return str(self.client.create_experiment(dataset, artifact_location=location, tags=kind))
        except MlflowException:
            # another execution has made it in the meantime
            found = self.client.get_experiment_by_name(dataset)
            if found is None:
                raise
            return str(found.experiment_id)

    def experiments(self) -> list[str]:
        """The ids of all experiments."""
        return [experiment.experiment_id for experiment in self.client.search_experiments()]

    def open_run(
        self,
        step: TrackedStep,
        parent: Run | None = None,
        more: Mapping[str, str] | None = None,
        *,
        experiment: str | None = None,
        cached: bool = False,
        begun: int | None = None,
    ) -> str:
        """A run with everything known of `step` before it trains: under `parent`, else alone in an experiment."""
        tags = {**step.tags(), **(more or {}), "cursus.cached": str(cached).lower(), "mlflow.source.name": "cursus run"}
        if parent is not None:
            tags["mlflow.parentRunId"] = parent.info.run_id
            tags["cursus.execution"] = parent.data.tags.get("cursus.execution", "")
            experiment = parent.info.experiment_id
        experiment = experiment or self.experiment(step.dataset or step.recipe)
        run = self.client.create_run(experiment, start_time=begun, tags=tags, run_name=step.name)
        run_id = str(run.info.run_id)
        self.describe(run_id, step)
        return run_id

    def describe(self, run_id: str, step: TrackedStep) -> None:
        """Log the parameters and the inputs of a step. Logging them twice changes nothing."""
        from mlflow.entities import LoggedModelInput

        self.client.log_batch(run_id, params=parameters(step.settings))
        models = [model for parent_of in dict.fromkeys(step.parents.values()) if (model := self.model_of(parent_of))]
        self.client.log_inputs(
            run_id,
            datasets=dataset_inputs(self.root, step.data),
            models=[LoggedModelInput(model) for model in models],
        )

    def attempt(self, fingerprint: str, experiments: Sequence[str]) -> Run | None:
        """The latest run of an attempt at a step that did not finish, and that nobody is at work on."""
        wanted = f"tags.`cursus.fingerprint` = '{fingerprint}' and tags.`cursus.cached` = 'false'"
        unfinished = self.client.search_runs(list(experiments), f"{wanted} and attributes.status != 'FINISHED'")
        # what is told from a record alone is told under a lock: a run that is open was left half-told
        return next(
            (run for run in unfinished if run.info.status != "RUNNING" or "cursus.projected" in run.data.tags), None
        )

    def reopen_run(self, run: Run, parent: Run) -> None:
        """Open the run of an earlier attempt again, under `parent`."""
        run_id, execution = str(run.info.run_id), parent.data.tags.get("cursus.execution", "")
        before = run.data.tags.get("cursus.execution", "")
        if before != execution:
            attempts = run.data.tags.get("cursus.attempts", before)
            self.client.set_tag(run_id, "cursus.attempts", f"{attempts}, {execution}")
            self.client.set_tag(run_id, "mlflow.parentRunId", parent.info.run_id)
            self.client.set_tag(run_id, "cursus.execution", execution)
        if "cursus.error" in run.data.tags:
            self.client.delete_tag(run_id, "cursus.error")
        if run.info.status != "RUNNING":
            self.client.update_run(run_id, "RUNNING")

    def last_steps(self, run_id: str) -> dict[str, int]:
        """For each metric of a run's training, the last step that it was told of."""
        # of each metric a run holds its latest point; its history may be of a hundred thousand
        data: Any = self.client.get_run(run_id).data.to_proto()
        return {metric.key: int(metric.step) for metric in data.metrics if not metric.key.startswith("system/")}

    def close_run(self, run_id: str, provenance: Provenance, folder: Path, ended: int) -> str | None:
        """Log the model in `folder` as what the run made, and close the run."""
        step = TrackedStep.of(provenance)
        model_id = None
        if provenance.judges:
            for name in provenance.files:
                self.client.log_artifact(run_id, str(folder / name))
        else:
            model_id = self.log_model(step.name.replace("@", "-"), run_id, folder, step.tags(), provenance.kind)
            self._models[step.fingerprint] = model_id
        self.client.log_batch(run_id, metrics=final_points(provenance, ended, model_id))
        self.link_output(run_id, model_id, provenance)
        self.client.set_tag(run_id, "cursus.commit", provenance.environment.commit or "none")
        self.client.set_terminated(run_id, "FINISHED", end_time=ended)
        return model_id

    def log_model(self, name: str, run_id: str, folder: Path, tags: Mapping[str, str], kind: str) -> str:
        """The id of a new model with the files of `folder`.

        Files are hard-linked where MLflow keeps its artifacts on the same disk: a copy of every model would double the
        store, and neither side changes a file in place.
        """
        experiment = self.client.get_run(run_id).info.experiment_id
        model = self.client.create_logged_model(
            experiment, name=REFUSED.sub("-", name), source_run_id=run_id, tags=dict(tags), model_type=kind
        )
        place = urlparse(model.artifact_location)
        if place.scheme in ("", "file"):
            shutil.copytree(folder, url2pathname(place.path), copy_function=_link_or_copy, dirs_exist_ok=True)
        else:
            self.client.log_model_artifacts(model.model_id, str(folder))
        self.client.finalize_logged_model(model.model_id, "READY")
        return str(model.model_id)

    def record(self, provenance: Provenance, folder: Path, experiment: str | None = None) -> str:
        """Tell a finished step from its record alone; the id of its run.

        Where an attempt at it was told of, that run is completed: its curves without a gap and without a repeat. Without an
        experiment, a new run is in the one of the dataset that the step read.
        """
        begun = round(datetime.fromisoformat(provenance.environment.started).timestamp() * 1000)
        ended = begun + round(provenance.environment.seconds * 1000)
        step, told = TrackedStep.of(provenance), dict[str, int]()
        attempt = self.attempt(step.fingerprint, self.experiments())
        if attempt is None:
            more = {"cursus.projected": "true"}
            run_id = self.open_run(step, more=more, experiment=experiment, begun=begun)
        else:
            # it made the artifact, and was stopped before it could say so
            run_id = str(attempt.info.run_id)
            self.client.update_run(run_id, "RUNNING")
            self.describe(run_id, step)
            told = self.last_steps(run_id)
        curve = folder / "metrics.jsonl"
        if curve.exists():
            lines = [json.loads(line) for line in curve.read_text(encoding="utf-8").splitlines()]
            self.log_points(run_id, points(lines, begun, ended), told)
        self.close_run(run_id, provenance, folder, ended)
        return run_id

    def log_points(self, run_id: str, found: Sequence[Metric], told: Mapping[str, int]) -> None:
        """Add points to a run's curves, except those that it has been `told` of (the last step of each)."""
        news = [point for point in found if point.step > told.get(point.key, -1)]
        self.client.log_batch(run_id, metrics=news)

    def recorded(self, fingerprint: str) -> str | None:
        """The run that made an artifact, where MLflow tells of it."""
        wanted = f"tags.`cursus.fingerprint` = '{fingerprint}' and tags.`cursus.cached` = 'false'"
        runs = self.client.search_runs(
            self.experiments(), f"{wanted} and attributes.status = 'FINISHED'", max_results=1
        )
        return str(runs[0].info.run_id) if runs else None

    def model_of(self, fingerprint: str) -> str | None:
        """The id of the model logged for an artifact, where there is one."""
        if fingerprint not in self._models:
            found = self.client.search_logged_models(
                self.experiments(), f"tags.`cursus.fingerprint` = '{fingerprint}'", max_results=10
            )
            ready = [model.model_id for model in found if str(model.status) == "READY"]
            if not ready:
                return None
            self._models[fingerprint] = ready[0]
        return self._models[fingerprint]

    def link_output(self, run_id: str, model_id: str | None, provenance: Provenance) -> None:
        """Say that a run made, or stands for, a model; nothing where there is none."""
        from mlflow.entities import LoggedModelOutput

        if model_id is not None:
            step = int(provenance.result.get("steps", 0))
            self.client.log_outputs(run_id, [LoggedModelOutput(model_id, step)])


def final_points(provenance: Provenance, when: int, model_id: str | None = None) -> list[Metric]:
    """The final numbers of a step as points, of its model too where that is given."""
    from mlflow.entities import Metric

    step = int(provenance.result.get("steps", 0))
    return [Metric(name, value, when, step, model_id=model_id) for name, value in final_numbers(provenance).items()]


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
