"""MLflow: the story of what ran. A projection of the store that decides nothing and can be rebuilt from it.

    execution (parent run) ─┬─ general        trained: curves, parameters, dataset inputs, system metrics, its model
                            ├─ classify@1     one nested run a step
                            └─ small          a cache hit: final numbers, linked to the model and the run it came from

Nothing here waits for MLflow and nothing that goes wrong stops a run: what happens is written into the execution's journal
(`tasks.tracking.journal`) and told from there by a thread (`tasks.tracking.outbox`), which tries again while MLflow is away. What is
untold when the execution ends, however it ends, is told when the next one starts.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipelines.lineage.store import Artifact, Store
from tasks.decisions.journal import PromotionJournal
from tasks.servers.tracking_database import refuse_network_folder
from tasks.tracking.champions import settle_champions
from tasks.tracking.journal import (
    Entry,
    ExecutionBegan,
    ExecutionEnded,
    Journal,
    Measured,
    ModelsOffered,
    ReportWritten,
    Sampled,
    Status,
    StepBegan,
    StepCached,
    StepFailed,
    StepFinished,
    settle,
    untold,
)
from tasks.tracking.outbox import Outbox
from tasks.tracking.projection import Projection
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry
from tasks.tracking.system_metrics import Sampler
from tasks.tracking.tracked_values import TrackedStep
from tasks.tracking.writer import Teller

PATIENCE = 15.0
"""Seconds that the end of an execution waits for an MLflow that is away."""

log = logging.getLogger("cursus.tracking")


class CatchUp(Entry):
    """What earlier executions left untold. First in every outbox, and in no journal."""

    store: Path


class Tracker:
    """The MLflow of the checkout at `root`, or the one that MLFLOW_TRACKING_URI names. Building one opens nothing.

    Steps are known by their fingerprint. Every method returns at once, except those that say how long they wait.
    """

    def __init__(self, root: Path) -> None:
        self.recorder = Recorder(root)
        self._teller = Teller(self.recorder)
        self._outbox: Outbox | None = None
        self._journal: Journal | None = None
        self._samplers: dict[str, Sampler] = {}
        self._writing = threading.Lock()
        self._execution = ""

    @property
    def failure(self) -> str | None:
        """Why MLflow is not being told; None while it answers."""
        return self._outbox.failure if self._outbox is not None else None

    @property
    def run_id(self) -> str | None:
        """The execution's run; None while MLflow has not been told of it."""
        return self._teller.run_id

    @property
    def page(self) -> str | None:
        """The execution's page in MLflow's UI, behind the server's address; None as `run_id`."""
        return self._teller.page

    def begin_execution(
        self, execution_id: str, recipe: str, dataset: str, plan: Sequence[Mapping[str, Any]], store: Store
    ) -> None:
        """Open the run of an execution, after what earlier ones left untold of themselves and of `store`.

        Raises CursusError where the tracking database lies in a folder that cannot hold one.
        """
        refuse_network_folder(self.recorder.root, self.recorder.uri)
        self._execution = execution_id
        with suppress(OSError):  # without a journal only what MLflow misses at the end is lost to its curves
            self._journal = Journal.begin(self.recorder.root, execution_id)
        self._outbox = Outbox(self._tell, self.recorder.is_away, self.recorder.advice)
        self._outbox.put([CatchUp(store=store.root)])
        steps = [dict(step) for step in plan]
        self._put(ExecutionBegan(execution=execution_id, recipe=recipe, dataset=dataset, plan=steps))

    def begin_step(self, step: TrackedStep) -> None:
        """Open a nested run for a step that is about to train, or the one of an attempt that was interrupted.

        System metrics are sampled until it ends.
        """
        self._put(StepBegan(step=step))

        def sampled(numbers: dict[str, float]) -> None:
            self._put(Sampled(fingerprint=step.fingerprint, numbers=numbers))

        self._stop_sampling(step.fingerprint)
        self._samplers[step.fingerprint] = Sampler(sampled)

    def log_metrics(self, fingerprint: str, lines: Iterable[Mapping[str, Any]]) -> None:
        """Add lines of `metrics.jsonl`, as they were read since the last call, to a step's curves.

        A step that continues from a checkpoint tells lines again that its first attempt told: the same, and left out.
        """
        self._put(Measured(fingerprint=fingerprint, lines=[dict(line) for line in lines]))

    def finish_step(self, artifact: Artifact) -> None:
        """Close a step's run with its final numbers and the model it made."""
        self._stop_sampling(artifact.fingerprint)
        self._put(StepFinished(fingerprint=artifact.fingerprint, folder=artifact.folder.resolve()))

    def fail_step(self, fingerprint: str, message: str) -> None:
        """Close a step's run as failed."""
        self._stop_sampling(fingerprint)
        self._put(StepFailed(fingerprint=fingerprint, message=message))

    def link_cached(self, artifact: Artifact, name: str | None = None) -> None:
        """A nested run for a step that was in the store: its final numbers, and links to the run and model it came from."""
        self._put(StepCached(folder=artifact.folder.resolve(), name=name))

    def log_report(self, page: Path) -> None:
        """Attach the execution's HTML report to its run."""
        self._put(ReportWritten(page=page.resolve()))

    def register(
        self, store: Store, answering: str | None, body: str | None, scores: Mapping[str, float]
    ) -> dict[str, str]:
        """Register the fingerprints that an execution ends in (`Registry.register_final`); model name to version.

        Waits until that is done. Empty where MLflow is away: they are then registered when it is told of the rest.
        """
        self._put(ModelsOffered(store=store.root.resolve(), answering=answering, body=body, scores=dict(scores)))
        if self._outbox is None or not self._outbox.drain(PATIENCE):
            return {}
        return self._teller.versions

    def finish_execution(self, status: Status, headline: Mapping[str, float]) -> None:
        """Close the execution's run with `status`, and any of its steps still open as killed.

        Waits until MLflow has been told everything, and not long where it is away.
        """
        for fingerprint in list(self._samplers):
            self._stop_sampling(fingerprint)
        self._put(ExecutionEnded(status=status, headline=dict(headline)))
        if self._outbox is None:
            return
        # whoever stops a run waits for its prompt
        told = self._outbox.drain(PATIENCE, at_most=PATIENCE if status == "KILLED" else float("inf"))
        self._outbox.close()
        if told:
            self._let_go(forget=True)
            settle(self.recorder.root, self._execution)
        else:
            self._let_go(forget=False)
            log.warning("MLflow has not been told everything (%s); the next run tells it the rest.", self.failure)

    def _put(self, entry: Entry) -> None:
        with self._writing:
            if self._journal is not None:
                try:
                    self._journal.write(entry)
                except OSError as error:
                    log.warning("%s: %s; MLflow may not be told all of this run.", self._journal.path, error)
                    self._let_go(forget=False)
            if self._outbox is not None:
                self._outbox.put([entry])

    def _let_go(self, *, forget: bool) -> None:
        journal, self._journal = self._journal, None
        if journal is not None and forget:
            journal.forget()
        elif journal is not None:
            journal.release()

    def _tell(self, entries: list[Entry]) -> None:
        """In the outbox's thread."""
        if isinstance(entries[0], CatchUp):
            try:
                catch_up(self.recorder, Store(entries[0].store))
            except Exception as error:
                if self.recorder.is_away(error):
                    raise
                log.warning("MLflow is not told of what it missed before (%s).", error)
        else:
            self._teller.tell(entries)

    def _stop_sampling(self, fingerprint: str) -> None:
        sampler = self._samplers.pop(fingerprint, None)
        if sampler is not None:
            sampler.stop()


def tell_what_is_left(root: Path, store: Store) -> None:
    """Catch up with executions that ended while MLflow was away, where there are any; a warning where it still is."""
    if untold(root) or PromotionJournal(store).untold():
        recorder = Recorder(root)
        try:
            catch_up(recorder, store)
        except Exception as error:
            log.warning("MLflow does not answer (%s); it is told of earlier runs when the next one starts.", error)


def catch_up(recorder: Recorder, store: Store) -> int:
    """Tell what executions left untold that have ended, and every artifact of `store` that MLflow does not tell of.

    How many artifacts those were; raises what MLflow raises while it is away. A journal that MLflow refuses is put aside.
    """
    for journal in Journal.abandoned(recorder.root):
        entries = journal.entries()
        try:
            Teller(recorder).tell_all(entries)
        except Exception as error:
            if recorder.is_away(error):
                journal.release()
                raise
            log.warning("MLflow refuses what %s says (%s); it is not told.", journal.refuse(), error)
        else:
            journal.forget()
            # one that breaks off was not all there was to tell
            if entries and isinstance(entries[-1], ExecutionEnded):
                settle(recorder.root, journal.execution)
    missing = Projection(recorder, store).replay()
    settle_champions(Registry(recorder), store)
    return missing
