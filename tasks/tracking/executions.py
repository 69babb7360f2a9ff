"""The record of executions in MLflow: a projection of the store, which decides nothing and can be rebuilt from it.

    execution (parent run) ─┬─ general        trained: curves, parameters, dataset inputs, system metrics, its model
                            ├─ classify@1     one nested run a step
                            └─ small          a cache hit: final numbers, linked to the model and the run it came from

Nothing here waits for MLflow, and no failure stops a run: every event is written to the execution's journal
(`tasks.tracking.journal`) and sent from there by a thread (`tasks.tracking.outbox`), which retries while MLflow is
unavailable. What is unsent when the execution ends, however it ends, is sent when the next one starts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipelines.lineage.provenance import DataSource
from pipelines.lineage.store import Artifact, Store
from tasks.decisions.journal import PromotionJournal
from tasks.servers.tracking_database import refuse_network_folder
from tasks.tracking.backfill import TrackingBackfill
from tasks.tracking.champions import sync_champions
from tasks.tracking.execution_backfill import record_missing_executions
from tasks.tracking.journal import (
    Entry,
    ExecutionBegan,
    ExecutionEnded,
    Journal,
    MetricsMeasured,
    ModelsOffered,
    ReportWritten,
    Status,
    StepBegan,
    StepCached,
    StepFailed,
    StepFinished,
    SystemMetricsSampled,
)
from tasks.tracking.outbox import Outbox
from tasks.tracking.recorded import has_pending, mark_recorded
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry
from tasks.tracking.system_metrics import Sampler
from tasks.tracking.tracked_values import TrackedStep
from tasks.tracking.writer import MLflowWriter

PATIENCE = 15.0
"""Seconds that the end of an execution waits for an MLflow that does not answer."""

log = logging.getLogger("cursus.tracking")


class CatchUp(Entry):
    """Request to send what earlier executions left unsent. First in every outbox, and in no journal."""

    store: Path


class Tracker:
    """The MLflow of the checkout at `root`, or the one that MLFLOW_TRACKING_URI names. The constructor connects to
    nothing.

    Steps are identified by their fingerprint. Every method returns at once, except those that document how long they
    wait.
    """

    def __init__(self, root: Path) -> None:
        self.recorder = Recorder(root)
        self._writer = MLflowWriter(self.recorder)
        self._outbox: Outbox | None = None
        self._journal: Journal | None = None
        self._samplers: dict[str, Sampler] = {}
        self._writing = threading.Lock()
        self._execution = ""

    @property
    def failure(self) -> str | None:
        """Why MLflow does not record at present; None while it answers."""
        return self._outbox.failure if self._outbox is not None else None

    @property
    def run_id(self) -> str | None:
        """Id of the execution's run; None until MLflow has created it."""
        return self._writer.run_id

    @property
    def page(self) -> str | None:
        """The execution's page in MLflow's UI, relative to the server's address; None as long as `run_id` is."""
        return self._writer.page

    def begin_execution(
        self,
        execution_id: str,
        recipe: str,
        dataset: str,
        plan: Sequence[Mapping[str, Any]],
        store: Store,
        *,
        smoke: bool = False,
        parameters: Mapping[str, str] | None = None,
        data: Mapping[str, DataSource] | None = None,
    ) -> None:
        """Open the run of an execution, after sending what earlier executions left unsent and what MLflow lacks of
        `store`.

        `parameters` are what was requested, `data` are the tables of the dataset. A `smoke` run is recorded in an
        experiment of its own. Raises CursusError when the tracking database is in a
        folder that cannot hold one.
        """
        refuse_network_folder(self.recorder.root, self.recorder.uri)
        self._execution = execution_id
        with suppress(OSError):  # without a journal, only the curves that MLflow misses at the end are lost
            self._journal = Journal.begin(self.recorder.root, execution_id)
        self._outbox = Outbox(self._send, self.recorder.is_unavailable, self.recorder.advice)
        self._outbox.put([CatchUp(store=store.root)])
        steps = [dict(step) for step in plan]
        self._put(
            ExecutionBegan(
                execution=execution_id,
                recipe=recipe,
                dataset=dataset,
                plan=steps,
                smoke=smoke,
                parameters=dict(parameters or {}),
                data=dict(data or {}),
            )
        )

    def begin_step(self, step: TrackedStep) -> None:
        """Open a nested run for a step that is about to train, or reopen that of an interrupted attempt.

        System metrics are sampled until it ends.
        """
        self._put(StepBegan(step=step))

        def record(figures: dict[str, float]) -> None:
            self._put(SystemMetricsSampled(fingerprint=step.fingerprint, numbers=figures))

        self._stop_sampling(step.fingerprint)
        self._samplers[step.fingerprint] = Sampler(record)

    def log_metrics(self, fingerprint: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Add the lines of `metrics.jsonl` since the last call to a step's curves.

        A step that resumes from a checkpoint repeats lines of its first attempt; they are equal, and left out.
        """
        self._put(MetricsMeasured(fingerprint=fingerprint, lines=[dict(line) for line in lines]))

    def finish_step(self, artifact: Artifact) -> None:
        """Close a step's run with its final numbers and the model it made."""
        self._stop_sampling(artifact.fingerprint)
        self._put(StepFinished(fingerprint=artifact.fingerprint, folder=artifact.folder.resolve()))

    def fail_step(self, fingerprint: str, message: str) -> None:
        """Close a step's run as failed."""
        self._stop_sampling(fingerprint)
        self._put(StepFailed(fingerprint=fingerprint, message=message))

    def link_cached(self, artifact: Artifact, name: str | None = None) -> None:
        """Log a nested run for a cached step: its final metrics, and links to the run and the model it came from."""
        self._put(StepCached(folder=artifact.folder.resolve(), name=name))

    def log_report(self, page: Path) -> None:
        """Attach the execution's HTML report to its run."""
        self._put(ReportWritten(page=page.resolve()))

    def register(
        self,
        store: Store,
        answering: str | None,
        backbone: str | None,
        scores: Mapping[str, float],
        warning: str | None = None,
        about: str | None = None,
    ) -> dict[str, str]:
        """Register the final models of an execution by fingerprint (`Registry.register_final`); model name to version.

        Waits until that is done. Empty when MLflow does not answer: they are then registered with the rest, later.
        """
        self._put(
            ModelsOffered(
                store=store.root.resolve(),
                answering=answering,
                backbone=backbone,
                scores=dict(scores),
                warning=warning,
                about=about,
            )
        )
        if self._outbox is None or not self._outbox.drain(PATIENCE):
            return {}
        return self._writer.versions

    def finish_execution(
        self, status: Status, headline: Mapping[str, float], tags: Mapping[str, str] | None = None
    ) -> None:
        """Close the execution's run with `status`, and any of its steps still open as killed.

        `tags` name what the scores of `headline` are of.

        Waits until MLflow has recorded everything, at most `PATIENCE` seconds while it does not answer.
        """
        for fingerprint in list(self._samplers):
            self._stop_sampling(fingerprint)
        self._put(ExecutionEnded(status=status, headline=dict(headline), tags=dict(tags or {})))
        if self._outbox is None:
            return
        # a user who interrupts a run waits for the shell prompt
        complete = self._outbox.drain(PATIENCE, at_most=PATIENCE if status == "KILLED" else float("inf"))
        self._outbox.close()
        if complete:
            self._close_journal(forget=True)
            mark_recorded(self.recorder.root, self._execution)
        else:
            self._close_journal(forget=False)
            log.warning("MLflow has not recorded everything (%s); the next run sends the rest.", self.failure)

    def _put(self, entry: Entry) -> None:
        with self._writing:
            if self._journal is not None:
                try:
                    self._journal.write(entry)
                except OSError as error:
                    log.warning("%s: %s; MLflow may not record all of this run.", self._journal.path, error)
                    self._close_journal(forget=False)
            if self._outbox is not None:
                self._outbox.put([entry])

    def _close_journal(self, *, forget: bool) -> None:
        journal, self._journal = self._journal, None
        if journal is not None and forget:
            journal.forget()
        elif journal is not None:
            journal.release()

    def _send(self, entries: list[Entry]) -> None:
        """Write entries to MLflow. Runs in the outbox's thread."""
        if isinstance(entries[0], CatchUp):
            try:
                catch_up(self.recorder, Store(entries[0].store))
            except Exception as error:
                if self.recorder.is_unavailable(error):
                    raise
                log.warning("MLflow cannot be brought up to date with earlier runs (%s).", error)
        else:
            self._writer.write(entries)

    def _stop_sampling(self, fingerprint: str) -> None:
        sampler = self._samplers.pop(fingerprint, None)
        if sampler is not None:
            sampler.stop()


def record_pending_executions(root: Path, store: Store) -> None:
    """Send what executions left that ended while MLflow was unavailable; warn when it still is."""
    if has_pending(root) or PromotionJournal(store).pending():
        recorder = Recorder(root)
        try:
            catch_up(recorder, store)
        except Exception as error:
            log.warning("MLflow does not answer (%s); earlier runs are recorded when the next one starts.", error)


def catch_up(recorder: Recorder, store: Store) -> int:
    """Send the journals of ended executions, then every artifact of `store` that MLflow lacks; return the artifacts'
    number. Executions with a report that it lacks follow them.

    Raises what MLflow raises while it is unavailable. A journal that MLflow rejects is renamed to `.refused`.
    """
    for journal in Journal.abandoned(recorder.root):
        entries = journal.entries()
        try:
            MLflowWriter(recorder).write_journal(entries)
        except Exception as error:
            if recorder.is_unavailable(error):
                journal.release()
                raise
            log.warning("MLflow rejects the journal %s (%s); it is not sent again.", journal.refuse(), error)
        else:
            journal.forget()
            # a journal that breaks off does not hold the whole execution
            if entries and isinstance(entries[-1], ExecutionEnded):
                mark_recorded(recorder.root, journal.execution)
    missing = TrackingBackfill(recorder, store).record_missing()
    record_missing_executions(recorder)
    sync_champions(Registry(recorder), store)
    return missing
