"""Writes the entries of one execution to MLflow. Writing an entry twice changes nothing.

An entry whose response was lost is therefore sent again, and a journal of unknown progress is sent from its beginning:
runs are looked up before they are created, and curves are extended only beyond their last point.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import StoreError
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.reports.elements.table import TABLES
from tasks.display.page_addresses import page_path
from tasks.servers.tracking_database import is_database
from tasks.tracking.backfill import ensure_run
from tasks.tracking.execution_runs import PARENT_RUN, describe_execution
from tasks.tracking.journal import (
    Entry,
    ExecutionBegan,
    ExecutionEnded,
    MetricsMeasured,
    ModelsOffered,
    ReportWritten,
    StepBegan,
    StepCached,
    StepFailed,
    StepFinished,
    SystemMetricsSampled,
    batches,
)
from tasks.tracking.parent_models import NOTE
from tasks.tracking.recorder import Recorder, final_points
from tasks.tracking.registry import Registry
from tasks.tracking.run_names import EXECUTION, execution_run_name, step_run_name
from tasks.tracking.tracked_values import TrackedStep, key, points
from tasks.tracking.views import save_views

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run


OPEN = "attributes.status = 'RUNNING'"
"""Filter for open runs, in MLflow's query language."""


class MLflowWriter:
    """Writes entries through `recorder`. Every method raises what MLflow raises."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.run_id: str | None = None
        """Id of the execution's run, once MLflow has created it."""
        self.versions: dict[str, str] = {}
        """Registered model to version."""
        self._execution = ""
        self._experiment = ""
        self._runs: dict[str, str] = {}
        """Fingerprint to the open run of a step."""
        self._last_steps: dict[str, dict[str, int]] = {}
        """Run id of an earlier attempt to the last step of each of its metrics."""
        self._begun: dict[str, int] = {}

    @property
    def page(self) -> str | None:
        """The execution's page in MLflow's UI, relative to the server's address."""
        return self.run_id and f"#/experiments/{self._experiment}/runs/{self.run_id}"

    def write(self, entries: Sequence[Entry]) -> None:
        """Write one entry, or several of one step's curves."""
        match entries[0]:
            case ExecutionBegan() as entry:
                self._begin(entry)
            case StepBegan() as entry:
                self._begin_step(entry)
            case MetricsMeasured() | SystemMetricsSampled():
                self._add_to_curves(entries)
            case StepFinished() as entry:
                self._finish_step(entry)
            case StepFailed() as entry:
                self._fail_step(entry)
            case StepCached() as entry:
                self._link_cached(entry)
            case ReportWritten() as entry if self.run_id is not None and entry.page.exists():
                self._link_report(entry.page)
                for page in sorted(entry.page.parent.glob("*.html")):
                    self.recorder.client.log_artifact(self.run_id, str(page))
                for table in sorted((entry.page.parent / TABLES).glob("*.*")):
                    self.recorder.client.log_artifact(self.run_id, str(table), TABLES)
            case ModelsOffered() as entry:
                self.versions = self._register(entry)
            case ExecutionEnded() as entry:
                self._end(entry)

    def write_journal(self, entries: Iterable[Entry]) -> None:
        """Write a whole journal. Without an entry of how the execution ended, its process was killed."""
        known = list(entries)
        for batch in batches(known):
            self.write(batch)
        if known and not isinstance(known[-1], ExecutionEnded):
            self._end(ExecutionEnded(status="KILLED", headline={}, when=known[-1].when))

    def adopt(self, run_id: str) -> None:
        """Nest the run of a step that was logged from its record in the execution's run; not one that has another."""
        run, parent = self.recorder.client.get_run(run_id), self._parent()
        if PARENT_RUN not in run.data.tags:
            name = str(run.info.run_name).partition(" · ")[0]
            recipe, fingerprint = run.data.tags["cursus.recipe"], run.data.tags["cursus.fingerprint"]
            self.recorder.client.set_tag(run_id, PARENT_RUN, parent.info.run_id)
            self.recorder.client.set_tag(run_id, "cursus.execution", self._execution)
            self.recorder.client.update_run(run_id, name=step_run_name(name, recipe, self._execution, fingerprint))

    def _begin(self, entry: ExecutionBegan) -> None:
        self._execution = entry.execution
        self._experiment = self.recorder.experiment(entry.dataset, smoke=entry.smoke)
        name = execution_run_name(entry.recipe, entry.parameters.get("variants"), entry.execution)
        run = self._find(f"attributes.run_name = '{name}'")
        if run is None:
            tags = {
                "cursus.execution": entry.execution,
                "cursus.recipe": entry.recipe,
                "cursus.kind": EXECUTION,
                "mlflow.source.name": "cursus run",
            }
            run = self.recorder.client.create_run(self._experiment, entry.when, tags=tags, run_name=name)
        self.run_id = str(run.info.run_id)
        describe_execution(self.recorder, self.run_id, entry.dataset, entry.parameters, entry.data)
        save_views(self.recorder, self._experiment)
        self.recorder.client.log_dict(self.run_id, {"steps": entry.plan}, "plan.json")

    def _begin_step(self, entry: StepBegan) -> None:
        step, parent = entry.step, self._parent()
        run = self._find(_run_of(step.fingerprint)) or self.recorder.unfinished_run(
            step.fingerprint, [self._experiment]
        )
        if run is not None and run.info.status == "FINISHED":
            return
        if run is None:
            run_id = self.recorder.open_run(step, parent, begun=entry.when)
        else:
            run_id = str(run.info.run_id)
            self.recorder.reopen_run(run, step, parent)
            self.recorder.describe(run_id, step)
            self._last_steps[run_id] = self.recorder.last_steps(run_id)
        self._begun[run_id] = int(run.info.start_time) if run is not None else entry.when
        self._runs[step.fingerprint] = run_id

    def _add_to_curves(self, entries: Sequence[Entry]) -> None:
        metrics: list[Metric] = []
        run_id = None
        for entry in entries:
            if isinstance(entry, MetricsMeasured) and (run_id := self._runs.get(entry.fingerprint)) is not None:
                metrics += points(entry.lines, entry.when, entry.when)
            elif isinstance(entry, SystemMetricsSampled) and (run_id := self._runs.get(entry.fingerprint)) is not None:
                # a resumed step also continues these curves of its run: their x axis is the run's seconds
                seconds = (entry.when - self._begun[run_id]) // 1000
                metrics += points([{**entry.numbers, "step": seconds}], entry.when, entry.when)
        if run_id is None:
            return
        self.recorder.log_points(run_id, metrics, self._last_steps.get(run_id, {}))

    def _finish_step(self, entry: StepFinished) -> None:
        run_id = self._runs.pop(entry.fingerprint, None)
        provenance = _provenance(entry.folder)
        if run_id is None or provenance is None:
            return  # recorded before, or removed from the store since
        try:
            self.recorder.close_run(run_id, provenance, entry.folder, entry.when)
        except BaseException:
            self._runs[entry.fingerprint] = run_id
            raise

    def _fail_step(self, entry: StepFailed) -> None:
        run_id = self._runs.get(entry.fingerprint)
        if run_id is not None:
            self.recorder.client.set_tag(run_id, "cursus.error", entry.message)
            self.recorder.client.set_terminated(run_id, "FAILED", entry.when)
            del self._runs[entry.fingerprint]

    def _link_cached(self, entry: StepCached) -> None:
        provenance = _provenance(entry.folder)
        if provenance is None:
            return
        step, parent = TrackedStep.of(provenance, entry.name), self._parent()
        known = self._find(_run_of(step.fingerprint, cached=True))
        if known is not None and known.info.status == "FINISHED":
            return
        original = ensure_run(self.recorder, provenance, entry.folder, self._experiment)
        more = {"cursus.original_run": original}
        run = known.info.run_id if known else self.recorder.open_run(step, parent, more, cached=True, begun=entry.when)
        self.recorder.client.log_batch(run, metrics=final_points(provenance, entry.when))
        self.recorder.link_output(run, self.recorder.model_of(step.fingerprint), provenance)
        self.recorder.client.set_terminated(run, "FINISHED", entry.when)

    def _link_report(self, page: Path) -> None:
        """Link the report in the description of the execution's run, where this checkout's server shows both."""
        if is_database(self.recorder.uri) and self.run_id is not None:
            link = f"[Report of this execution]({page_path(self.recorder.root, page)})"
            self.recorder.client.set_tag(self.run_id, NOTE, link)

    def _register(self, entry: ModelsOffered) -> dict[str, str]:
        answering, backbone = (
            _provenance(entry.store / fingerprint) if fingerprint else None
            for fingerprint in (entry.answering, entry.backbone)
        )
        return Registry(self.recorder).register_final(
            Store(entry.store), answering, backbone, entry.scores, entry.warning, entry.about
        )

    def _end(self, entry: ExecutionEnded) -> None:
        """Close the execution's run, and steps that neither finished nor failed as killed."""
        from mlflow.entities import Metric, RunTag

        if self.run_id is None:
            return
        for run in self.recorder.client.search_runs([self._experiment], f"{self._own_runs} and {OPEN}"):
            if run.info.run_id != self.run_id:
                self.recorder.client.set_terminated(run.info.run_id, "KILLED", entry.when)
        metrics = [Metric(key(name), float(value), entry.when, 0) for name, value in entry.headline.items()]
        tags = [RunTag(f"cursus.{name}", value) for name, value in entry.tags.items()]
        self.recorder.client.log_batch(self.run_id, metrics=metrics, tags=tags)
        self.recorder.client.set_terminated(self.run_id, entry.status, entry.when)
        save_views(self.recorder, self._experiment)

    def _parent(self) -> Run:
        assert self.run_id is not None, "an execution begins before its steps"
        return self.recorder.client.get_run(self.run_id)

    @property
    def _own_runs(self) -> str:
        return f"tags.`cursus.execution` = '{self._execution}'"

    def _find(self, condition: str) -> Run | None:
        """The run of this execution that meets an MLflow filter condition; None when there is none."""
        runs = self.recorder.client.search_runs([self._experiment], f"{self._own_runs} and {condition}", max_results=1)
        return runs[0] if runs else None


def _run_of(fingerprint: str, *, cached: bool = False) -> str:
    return f"tags.`cursus.fingerprint` = '{fingerprint}' and tags.`cursus.cached` = '{str(cached).lower()}'"


def _provenance(folder: Path) -> Provenance | None:
    try:
        return Provenance.read(folder)
    except (OSError, StoreError):
        return None
