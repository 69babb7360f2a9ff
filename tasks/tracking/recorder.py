"""Logs steps as runs and models in MLflow.

Everything here raises what MLflow raises; `tasks.tracking.executions` handles it.
"""

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
from pipelines.safety.redaction import redacted
from tasks.environment import state_folder, tracking_uri
from tasks.servers.tracking_database import is_database, migrate_tracking_store
from tasks.tracking.parent_models import parent_model_tags
from tasks.tracking.run_names import step_run_name
from tasks.tracking.stage_parameters import SETTINGS, stage_parameters
from tasks.tracking.tracked_values import TrackedStep, dataset_inputs, final_numbers, points

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Run


HTTP_SERVER_ERROR = 500
FORBIDDEN_IN_NAMES = re.compile(r"""[/:.%"']""")
"""Characters that MLflow forbids in the name of a model, and that the name of a stage may have."""
PROJECTED = "cursus.projected"
"""Tag of a run that is, or was, logged from a step's record. That happens under a lock: such a run that is open was
left incomplete."""


class Recorder:
    """The MLflow of the checkout at `root`, or the one that MLFLOW_TRACKING_URI names.

    The constructor connects to nothing.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.uri = os.environ.get("MLFLOW_TRACKING_URI") or tracking_uri(self.root)
        self._models: dict[str, str] = {}

    @cached_property
    def client(self) -> MlflowClient:
        """The MLflow client. Takes 6 s when the database has to be created first."""
        # callers decide whether to retry; MLflow itself would retry for minutes
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "10")
        if is_database(self.uri):
            migrate_tracking_store(self.root, self.uri)
        import mlflow

        # MLflow logs its every action, and a traceback for a locked database
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        logging.getLogger("mlflow.store.db.utils").setLevel(logging.CRITICAL)
        # `models:/m-…` is resolved with the global tracking URI, not with the client's
        mlflow.set_tracking_uri(self.uri)
        return mlflow.MlflowClient(tracking_uri=self.uri, registry_uri=self.uri)

    def is_unavailable(self, error: Exception) -> bool:
        """Whether `error` means that a server or database does not answer now, so that a retry may succeed."""
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import OperationalError

        if isinstance(error, MlflowException):
            untyped: Any = error
            return int(untyped.get_http_status_code()) >= HTTP_SERVER_ERROR
        return isinstance(error, (OSError, OperationalError))

    def advice(self, failure: str) -> str:
        """Advice on a recurring failure, to append to a message; empty when there is none."""
        if self.uri.startswith("sqlite:") and "locked" in failure:
            return (
                f" {self.uri.removeprefix('sqlite:///')} has been locked by another process for more than 20 s: "
                "use PostgreSQL where several processes write at once (docs/servers.md)."
            )
        return ""

    def experiment(self, dataset: str, *, smoke: bool = False) -> str:
        """The id of the experiment named after the dataset, created if it does not exist yet; that of its `smoke` runs
        is another."""
        from mlflow.exceptions import MlflowException

        name = f"{dataset} (smoke runs)" if smoke else dataset
        known = self.client.get_experiment_by_name(name)
        if known is not None:
            return str(known.experiment_id)
        # MLflow's own default is relative to the current directory; a server decides for itself
        here = is_database(self.uri)
        location = (state_folder(self.root) / "mlartifacts" / dataset).as_uri() if here else None
        # without the kind, MLflow's UI opens on its pages for prompts and agents
        kind = {"mlflow.experimentKind": "custom_model_development"}
        try:
            return str(self.client.create_experiment(name, artifact_location=location, tags=kind))
        except MlflowException:
            # another execution has created it in the meantime
            known = self.client.get_experiment_by_name(name)
            if known is None:
                raise
            return str(known.experiment_id)

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
        """Open a run with everything known of `step` before it trains: nested in `parent`, else at the top of an
        experiment."""
        tags = {**step.tags(), **(more or {}), "cursus.cached": str(cached).lower(), "mlflow.source.name": "cursus run"}
        if parent is not None:
            tags["mlflow.parentRunId"] = parent.info.run_id
            tags["cursus.execution"] = parent.data.tags.get("cursus.execution", "")
            experiment = parent.info.experiment_id
        experiment = experiment or self.experiment(step.dataset or step.recipe)
        name = step_run_name(step.name, step.recipe, tags.get("cursus.execution"), step.fingerprint)
        run = self.client.create_run(experiment, start_time=begun, tags=tags, run_name=name)
        run_id = str(run.info.run_id)
        self.describe(run_id, step)
        return run_id

    def describe(self, run_id: str, step: TrackedStep) -> None:
        """Log the parameters, the settings and the inputs of a step. Idempotent."""
        from mlflow.entities import LoggedModelInput

        self.client.log_batch(run_id, params=stage_parameters(step))
        self.client.log_text(run_id, redacted(json.dumps(dict(step.settings), indent=1)), SETTINGS)
        models = [model for parent_of in dict.fromkeys(step.parents.values()) if (model := self.model_of(parent_of))]
        self.client.log_inputs(
            run_id,
            datasets=dataset_inputs(self.root, step.data),
            models=[LoggedModelInput(model) for model in models],
        )

    def unfinished_run(self, fingerprint: str, experiments: Sequence[str]) -> Run | None:
        """The latest run of an unfinished attempt at a step that no process is working on."""
        computed = _computed(fingerprint)
        unfinished = self.client.search_runs(list(experiments), f"{computed} and attributes.status != 'FINISHED'")
        return next((run for run in unfinished if run.info.status != "RUNNING" or PROJECTED in run.data.tags), None)

    def reopen_run(self, run: Run, step: TrackedStep, parent: Run) -> None:
        """Reopen the run of an earlier attempt at `step`, nested in `parent`."""
        run_id, execution = str(run.info.run_id), parent.data.tags.get("cursus.execution", "")
        before = run.data.tags.get("cursus.execution", "")
        if before != execution:
            attempts = run.data.tags.get("cursus.attempts", before)
            self.client.set_tag(run_id, "cursus.attempts", f"{attempts}, {execution}")
            self.client.set_tag(run_id, "mlflow.parentRunId", parent.info.run_id)
            self.client.set_tag(run_id, "cursus.execution", execution)
        if "cursus.error" in run.data.tags:
            self.client.delete_tag(run_id, "cursus.error")
        name = step_run_name(step.name, step.recipe, execution, step.fingerprint)
        self.client.update_run(run_id, "RUNNING", name)

    def last_steps(self, run_id: str) -> dict[str, int]:
        """The last logged step of each training metric of a run."""
        # a run carries the latest point of each metric; a metric's history may have a hundred thousand
        data: Any = self.client.get_run(run_id).data.to_proto()
        return {metric.key: int(metric.step) for metric in data.metrics if not metric.key.startswith("system/")}

    def close_run(self, run_id: str, provenance: Provenance, folder: Path, ended: int) -> str | None:
        """Log the model in `folder` as the output of the run, close the run, and return the model's id."""
        step = TrackedStep.of(provenance)
        model_id = None
        if provenance.judges:
            for name in provenance.files:
                self.client.log_artifact(run_id, str(folder / name))
        else:
            tags = {**step.tags(), **parent_model_tags(self, step)}
            model_id = self.log_model(step.name.replace("@", "-"), run_id, folder, tags, provenance.kind)
            self._models[step.fingerprint] = model_id
        self.client.log_batch(run_id, metrics=final_points(provenance, ended, model_id))
        self.link_output(run_id, model_id, provenance)
        self.client.set_tag(run_id, "cursus.commit", provenance.environment.commit or "none")
        self.client.set_terminated(run_id, "FINISHED", end_time=ended)
        return model_id

    def log_model(self, name: str, run_id: str, folder: Path, tags: Mapping[str, str], kind: str) -> str:
        """Log the files of `folder` as a new model and return its id.

        Files are hard-linked when MLflow's artifacts are on the same disk: copies of every model would double the
        store, and neither side changes a file in place.
        """
        experiment = self.client.get_run(run_id).info.experiment_id
        model = self.client.create_logged_model(
            experiment, name=FORBIDDEN_IN_NAMES.sub("-", name), source_run_id=run_id, tags=dict(tags), model_type=kind
        )
        location = urlparse(model.artifact_location)
        if location.scheme in ("", "file"):
            shutil.copytree(folder, url2pathname(location.path), copy_function=_link_or_copy, dirs_exist_ok=True)
        else:
            self.client.log_model_artifacts(model.model_id, str(folder))
        self.client.finalize_logged_model(model.model_id, "READY")
        return str(model.model_id)

    def record(self, provenance: Provenance, folder: Path, experiment: str | None = None) -> str:
        """Log a finished step from its record alone and return the id of its run.

        When MLflow has a run of an attempt at it, that run is completed, its curves without a gap or a repetition.
        Without `experiment`, a new run goes into that of the dataset that the step read.
        """
        begun = round(datetime.fromisoformat(provenance.environment.started).timestamp() * 1000)
        ended = begun + round(provenance.environment.seconds * 1000)
        step, last_steps = TrackedStep.of(provenance), dict[str, int]()
        attempt = self.unfinished_run(step.fingerprint, self.experiments())
        if attempt is None:
            more = {PROJECTED: "true"}
            if provenance.environment.smoke:
                experiment = experiment or self.experiment(step.dataset or step.recipe, smoke=True)
            run_id = self.open_run(step, more=more, experiment=experiment, begun=begun)
        else:
            # that attempt made the artifact, and was stopped before it closed its run
            run_id = str(attempt.info.run_id)
            self.client.set_tag(run_id, PROJECTED, "true")  # first: open without it, the run would stay open for ever
            self.client.update_run(run_id, "RUNNING")
            self.describe(run_id, step)
            last_steps = self.last_steps(run_id)
        curve = folder / "metrics.jsonl"
        if curve.exists():
            lines = [json.loads(line) for line in curve.read_text(encoding="utf-8").splitlines()]
            self.log_points(run_id, points(lines, begun, ended), last_steps)
        self.close_run(run_id, provenance, folder, ended)
        return run_id

    def log_points(self, run_id: str, metrics: Sequence[Metric], last_steps: Mapping[str, int]) -> None:
        """Add points to a run's curves, except those up to the last step that is already logged of a metric."""
        new = [point for point in metrics if point.step > last_steps.get(point.key, -1)]
        self.client.log_batch(run_id, metrics=new)

    def finished_run(self, fingerprint: str) -> str | None:
        """The id of the finished run that computed an artifact; None when MLflow has none."""
        finished = f"{_computed(fingerprint)} and attributes.status = 'FINISHED'"
        runs = self.client.search_runs(self.experiments(), finished, max_results=1)
        return str(runs[0].info.run_id) if runs else None

    def model_of(self, fingerprint: str) -> str | None:
        """The id of the model that was logged for an artifact; None when there is none."""
        if fingerprint not in self._models:
            logged = self.client.search_logged_models(
                self.experiments(), f"tags.`cursus.fingerprint` = '{fingerprint}'", max_results=10
            )
            ready = [model.model_id for model in logged if str(model.status) == "READY"]
            if not ready:
                return None
            self._models[fingerprint] = ready[0]
        return self._models[fingerprint]

    def link_output(self, run_id: str, model_id: str | None, provenance: Provenance) -> None:
        """Link a model as the output of a run, or of its cached copy; nothing without a model. Idempotent."""
        from mlflow.entities import LoggedModelOutput

        if model_id is None:
            return
        outputs = self.client.get_run(run_id).outputs
        # MLflow refuses a second link, for which a journal that a killed process had nearly sent would be refused
        if outputs is None or model_id not in {one.model_id for one in outputs.model_outputs}:
            step = int(provenance.result.get("steps", 0))
            self.client.log_outputs(run_id, [LoggedModelOutput(model_id, step)])


def final_points(provenance: Provenance, when: int, model_id: str | None = None) -> list[Metric]:
    """The final metrics of a step as MLflow points, also of its model if one is given."""
    from mlflow.entities import Metric

    step = int(provenance.result.get("steps", 0))
    return [Metric(name, value, when, step, model_id=model_id) for name, value in final_numbers(provenance).items()]


def _computed(fingerprint: str) -> str:
    """Filter for the runs that computed a step, in MLflow's query language."""
    return f"tags.`cursus.fingerprint` = '{fingerprint}' and tags.`cursus.cached` = 'false'"


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
    return target
