"""Prefect tasks for the steps of a plan: reuse an artifact, or launch a job, publish its result, and record it in
MLflow."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from pipelines.judging.subjects import Subject
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.results import Result
from pipelines.lineage.store import Artifact, Store, require_space
from pipelines.recipe.features import feature_role
from pipelines.recipe.job import Job
from pipelines.recipe.kinds import Kind
from pipelines.recipe.lines import teacher_role
from pipelines.recipe.model_annotations import read_models
from pipelines.recipe.plan import Step
from pipelines.recipe.starts import HEAD_START, Checkpoint
from pipelines.safety.redaction import redacted, redacted_errors
from tasks.display.artifacts import ARTIFACTS
from tasks.display.progress import TerminalProgress
from tasks.launchers import LauncherSession, resumed_runtime
from tasks.launchers.settings import TrainingSettings
from tasks.stages.conditions import conditions
from tasks.tracking.executions import Tracker
from tasks.tracking.tracked_values import TrackedStep

SPACE_NEEDED = 512 * 2**20
"""Free bytes required before a stage starts: checkpoints, weights and logs of a small model."""
SHOW_EVERY_SECONDS = 5.0
"""Interval between two updates of a progress artifact."""


@dataclass
class Context:
    """State shared by all tasks of one execution."""

    root: Path
    store: Store
    tracker: Tracker
    language: str
    """Language of the dataset."""
    launcher: LauncherSession
    training: TrainingSettings
    progress: TerminalProgress
    smoke: bool = False
    """Whether this is a smoke run: its results are kept apart from those that count."""
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    """Artifacts of the finished steps of this execution, by fingerprint."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Duration of each step that this execution computed, by fingerprint."""


@task(task_run_name="{label}", cache_policy=NO_CACHE)
@redacted_errors()
def run_step(label: str, step: Step, threads: int, context: Context) -> None:
    """Compute one step in a training process, and publish its artifact."""
    require_space(context.store.root, SPACE_NEEDED)
    job = _job(step, threads, context)
    context.progress.begin(step.label)
    context.tracker.begin_step(TrackedStep.planned(step))
    try:
        context.launcher.run(job, _Listener(step, context))
    except Exception as error:
        context.tracker.fail_step(step.fingerprint, redacted(f"{type(error).__name__}: {error}"))
        raise


@task(task_run_name="{label} (cached)", cache_policy=NO_CACHE)
@redacted_errors()
def use_cached(label: str, step: Step, artifact: Artifact, context: Context) -> None:
    """Use a finished step from the store, and link it in MLflow so that comparisons include it."""
    context.artifacts[artifact.fingerprint] = artifact
    context.tracker.link_cached(artifact, step.label)


class _Listener:
    """Reports a job's progress and publishes its result."""

    def __init__(self, step: Step, context: Context) -> None:
        self.step, self.context = step, context
        self.started = time.monotonic()
        self.began = datetime.now(UTC).isoformat(timespec="seconds")
        self.shown = -SHOW_EVERY_SECONDS
        self.metric = step.family.metrics[0]

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        share = self.context.progress.update(self.step.label, lines[-1], job.stage.budget.tokens, self.metric)
        self.context.tracker.log_metrics(self.step.fingerprint, lines)
        if share is not None:
            self._show(share)

    def active(self, job: Job, line: str) -> None:
        self.context.progress.status(self.step.label, line)

    def finished(self, job: Job, result: Result) -> None:
        step, context = self.step, self.context
        seconds = time.monotonic() - self.started
        artifact = context.store.publish(
            provenance_of(job, step, result, self.began, seconds, context.root, smoke=context.smoke)
        )
        context.artifacts[step.fingerprint] = artifact
        context.seconds[step.fingerprint] = seconds
        context.tracker.finish_step(artifact)
        get_run_logger().info(context.progress.done(step.label, result, seconds, self.metric))
        self._show(1.0)

    def _show(self, share: float) -> None:
        """Show progress in Prefect's UI, at most every few seconds, because each update is a request to its server."""
        now = time.monotonic()
        if share < 1 and now - self.shown < SHOW_EVERY_SECONDS:
            return
        self.shown = now
        text, percent = f"Stage {self.step.label}", 100 * share
        ARTIFACTS.progress(f"progress-{re.sub('[^a-z0-9]+', '-', self.step.label.lower())}", percent, text)


def _job(step: Step, threads: int, context: Context) -> Job:
    def folder(role: str) -> Path | None:
        return context.artifacts[step.parents[role]].folder if role in step.parents else None

    subjects = []
    for role, fingerprint in step.parents.items():
        if role.startswith("subject:"):
            stage, _, seed = role.removeprefix("subject:").rpartition("@")
            artifact = context.artifacts[fingerprint]
            answers = not Kind(artifact.provenance.kind).reads_plain_text
            subjects.append(
                Subject(
                    stage=stage,
                    seed=int(seed),
                    fingerprint=fingerprint,
                    folder=artifact.folder,
                    answers=answers,
                    tasks=step.judged[role],
                )
            )
    out = context.store.workspace(step.fingerprint)
    return Job(
        fingerprint=step.fingerprint,
        recipe=step.recipe,
        stage_name=step.label,
        stage=step.stage,
        seed=step.seed,
        language=step.language or context.language,
        family=step.family,
        families=dict(step.families),
        start=step.checkpoint or folder("start"),
        head_start=folder(HEAD_START),
        teachers={
            line: context.artifacts[step.parents[role]].folder
            for line in ("", *step.stage.lines)
            if (role := teacher_role(line)) in step.parents
        },
        features=tuple(
            context.artifacts[step.parents[feature_role(number)]].folder for number in range(len(step.stage.features))
        ),
        annotation_models={
            role: context.artifacts[step.parents[role]].folder
            for role, _, _ in read_models(step.stage)
            if role in step.parents  # what judges inherits annotations, and reads none
        },
        subjects=tuple(subjects),
        tables={name: context.root / source.path for name, source in step.data.items()},
        out=out,
        cache=context.store.tokens,
        runtime=resumed_runtime(out, context.training.runtime(step.stage, threads)),
    )


def provenance_of(
    job: Job, step: Step, result: Result, began: str, seconds: float, root: Path, *, smoke: bool = False
) -> Provenance:
    """The record of a step that has just been computed; its files are added when it is published."""
    return Provenance(
        fingerprint=step.fingerprint,
        recipe=step.recipe,
        stage=step.name,
        kind=str(step.stage.kind),
        seed=step.seed,
        identity=dict(step.identity),
        parents=dict(step.parents),
        data=dict(step.data),
        checkpoint=step.stage.start.model_dump(mode="json") if isinstance(step.stage.start, Checkpoint) else None,
        files={},
        result=result.model_dump(exclude={"resumed_from_step", "passed_over", "device"}),
        environment=conditions(root, job.runtime, result, began, seconds, smoke),
    )
