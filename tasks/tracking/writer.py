"""The story of one execution, told to MLflow entry by entry. Telling an entry twice changes nothing.

So an entry whose answer was lost on the way is told again, and a journal of which nobody knows how much was told is told
from its beginning: runs are looked for before they are made, and of a curve only what is behind its last point is added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import StoreError
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.reports.elements.table import TABLES
from tasks.tracking.journal import (
    Entry,
    ExecutionBegan,
    ExecutionEnded,
    Measured,
    ModelsOffered,
    ReportWritten,
    Sampled,
    Status,
    StepBegan,
    StepCached,
    StepFailed,
    StepFinished,
    batches,
)
from tasks.tracking.projection import run_of
from tasks.tracking.recorder import Recorder, final_points
from tasks.tracking.registry import Registry
from tasks.tracking.tracked_values import TrackedStep, points

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run


OPEN = "attributes.status = 'RUNNING'"
"""Of runs, as MLflow is asked for them."""


class Teller:
    """Tells through `recorder`. Every method raises what MLflow raises."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.run_id: str | None = None
        """The execution's run, once MLflow has it."""
        self.versions: dict[str, str] = {}
        """Registered model to version."""
        self._execution = ""
        self._experiment = ""
        self._runs: dict[str, str] = {}
        """Fingerprint to the open run of a step."""
        self._told: dict[str, dict[str, int]] = {}
        """Of a run that others have told of before, the last step of each metric."""
        self._begun: dict[str, int] = {}

    @property
    def page(self) -> str | None:
        """Where the execution's run is in MLflow's UI, behind the server's address."""
        return self.run_id and f"#/experiments/{self._experiment}/runs/{self.run_id}"

    def tell(self, entries: Sequence[Entry]) -> None:
        """Tell one entry, or several of one step's curves."""
        match entries[0]:
            case ExecutionBegan() as entry:
                self._begin(entry)
            case StepBegan() as entry:
                self._begin_step(entry)
            case Measured() | Sampled():
                self._add_to_curves(entries)
            case StepFinished() as entry:
                self._finish_step(entry)
            case StepFailed() as entry:
                self._fail_step(entry)
            case StepCached() as entry:
                self._link_cached(entry)
            case ReportWritten() as entry if self.run_id is not None and entry.page.exists():
                for page in sorted(entry.page.parent.glob("*.html")):
                    self.recorder.client.log_artifact(self.run_id, str(page))
                for table in sorted((entry.page.parent / TABLES).glob("*.*")):
                    self.recorder.client.log_artifact(self.run_id, str(table), TABLES)
            case ModelsOffered() as entry:
                self.versions = self._offer(entry)
            case ExecutionEnded() as entry:
                self._end(entry.status, entry.headline, entry.when)

    def tell_all(self, entries: Iterable[Entry]) -> None:
        """Tell a whole journal. Where it does not say how the execution ended, its process was killed."""
        known = list(entries)
        for batch in batches(known):
            self.tell(batch)
        if known and not isinstance(known[-1], ExecutionEnded):
            self._end("KILLED", {}, known[-1].when)

    def _begin(self, entry: ExecutionBegan) -> None:
        self._execution = entry.execution
        self._experiment = self.recorder.experiment(entry.dataset)
        name = f"{entry.recipe} {entry.execution}"
        found = self._own(f"attributes.run_name = '{name}'")
        if found is None:
            tags = {
                "cursus.execution": entry.execution,
                "cursus.recipe": entry.recipe,
                "mlflow.source.name": "cursus run",
            }
            found = self.recorder.client.create_run(self._experiment, entry.when, tags=tags, run_name=name)
        self.run_id = str(found.info.run_id)
        self.recorder.client.log_dict(self.run_id, {"steps": entry.plan}, "plan.json")

    def _begin_step(self, entry: StepBegan) -> None:
        step, parent = entry.step, self._parent()
        run = self._own(_of(step.fingerprint)) or self.recorder.attempt(step.fingerprint, [self._experiment])
        if run is not None and run.info.status == "FINISHED":
            return
        if run is None:
            run_id = self.recorder.open_run(step, parent, begun=entry.when)
        else:
            run_id = str(run.info.run_id)
            self.recorder.reopen_run(run, parent)
            self.recorder.describe(run_id, step)
            self._told[run_id] = self.recorder.last_steps(run_id)
        self._begun[run_id] = int(run.info.start_time) if run is not None else entry.when
        self._runs[step.fingerprint] = run_id

    def _add_to_curves(self, entries: Sequence[Entry]) -> None:
        found: list[Metric] = []
        run_id = None
        for entry in entries:
            if isinstance(entry, Measured) and (run_id := self._runs.get(entry.fingerprint)) is not None:
                found += points(entry.lines, entry.when, entry.when)
            elif isinstance(entry, Sampled) and (run_id := self._runs.get(entry.fingerprint)) is not None:
                # a step that goes on in its run continues these curves too: their steps are seconds of the run
                seconds = (entry.when - self._begun[run_id]) // 1000
                found += points([{**entry.numbers, "step": seconds}], entry.when, entry.when)
        if run_id is None:
            return
        self.recorder.log_points(run_id, found, self._told.get(run_id, {}))

    def _finish_step(self, entry: StepFinished) -> None:
        run_id = self._runs.pop(entry.fingerprint, None)
        provenance = _provenance(entry.folder)
        if run_id is None or provenance is None:
            return  # told before, or removed from the store since
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
        found = self._own(_of(step.fingerprint, cached=True))
        if found is not None and found.info.status == "FINISHED":
            return
        original = run_of(self.recorder, provenance, entry.folder, self._experiment)
        more = {"cursus.original_run": original}
        run = found.info.run_id if found else self.recorder.open_run(step, parent, more, cached=True, begun=entry.when)
        self.recorder.client.log_batch(run, metrics=final_points(provenance, entry.when))
        self.recorder.link_output(run, self.recorder.model_of(step.fingerprint), provenance)
        self.recorder.client.set_terminated(run, "FINISHED", entry.when)

    def _offer(self, entry: ModelsOffered) -> dict[str, str]:
        answering, body = (
            _provenance(entry.store / fingerprint) if fingerprint else None
            for fingerprint in (entry.answering, entry.body)
        )
        return Registry(self.recorder).register_final(Store(entry.store), answering, body, entry.scores)

    def _end(self, status: Status, headline: dict[str, float], when: int) -> None:
        """Close the execution's run with `status`. A step still open was not finished, and did not say that it failed."""
        from mlflow.entities import Metric

        if self.run_id is None:
            return
        for run in self.recorder.client.search_runs([self._experiment], f"{self._mine} and {OPEN}"):
            if run.info.run_id != self.run_id:
                self.recorder.client.set_terminated(run.info.run_id, "KILLED", when)
        metrics = [Metric(name, float(value), when, 0) for name, value in headline.items()]
        self.recorder.client.log_batch(self.run_id, metrics=metrics)
        self.recorder.client.set_terminated(self.run_id, status, when)

    def _parent(self) -> Run:
        assert self.run_id is not None, "an execution begins before its steps"
        return self.recorder.client.get_run(self.run_id)

    @property
    def _mine(self) -> str:
        return f"tags.`cursus.execution` = '{self._execution}'"

    def _own(self, which: str) -> Run | None:
        found = self.recorder.client.search_runs([self._experiment], f"{self._mine} and {which}", max_results=1)
        return found[0] if found else None


def _of(fingerprint: str, *, cached: bool = False) -> str:
    return f"tags.`cursus.fingerprint` = '{fingerprint}' and tags.`cursus.cached` = '{str(cached).lower()}'"


def _provenance(folder: Path) -> Provenance | None:
    try:
        return Provenance.read(folder)
    except (OSError, StoreError):
        return None
