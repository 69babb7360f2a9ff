"""Shared parts of all flows that compute: their set-up, the context of an execution, and the computation of a plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast
from uuid import UUID

from prefect.futures import PrefectFuture
from prefect.utilities.annotations import quote
from pydantic import BaseModel

from flows.process.outcome import record_outcome
from pipelines.lineage.locks import Lock
from pipelines.lineage.store import Store
from pipelines.messages.translation import message
from pipelines.recipe.final_models import lineage_steps
from pipelines.recipe.plan import Plan
from tasks.datasets.planning import sources
from tasks.datasets.prepared import Prepared
from tasks.display.artifacts import ARTIFACTS
from tasks.display.progress import TerminalProgress
from tasks.environment import project_root, state_folder
from tasks.launchers.settings import TrainingSettings
from tasks.records.execution_parameters import execution_parameters
from tasks.records.headlines import headline_of
from tasks.servers.environment import prepare_environment
from tasks.servers.flow_runs import recorded, report_ended_runs
from tasks.stages.conditions import commit_of
from tasks.stages.steps import Context, run_step, use_cached
from tasks.tracking.executions import Tracker

T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)

WATCH_SECONDS = 0.1
"""Interval at which running steps are polled."""


def whole(value: T) -> T:
    """Mark `value` as an opaque task argument: Prefect would otherwise traverse and copy it in search of futures."""
    return cast("T", quote(value))


def begin(work: Callable[[Path], R]) -> R:
    """Run `work` on the project's root as the body of a flow run: set the environment, record its final state, and
    publish its Prefect artifacts."""
    root = project_root()
    prepare_environment(root)
    report_ended_runs(root)

    def recorded_work() -> R:
        with recorded(root):
            result = work(root)
            ARTIFACTS.flush()
        return result

    return record_outcome(recorded_work)


@dataclass(frozen=True)
class Execution:
    """A plan that is being computed and recorded in MLflow."""

    identifier: str
    plan: Plan
    context: Context
    claims: ExitStack
    began: float
    """Value of time.monotonic() at its start."""
    parameters: Mapping[str, str]
    """What was requested."""

    @property
    def seconds(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self.began

    def compute(self, cores: int) -> None:
        """Compute the missing steps of the plan."""
        compute(self.plan, self.context, cores, self.claims)


@contextmanager
def execution(
    identifier: str,
    plan: Plan,
    prepared: Prepared,
    root: Path,
    store: Store,
    training: TrainingSettings,
    progress: TerminalProgress,
    *,
    log: str,
    began: float,
    smoke: bool,
    variants: Sequence[str] = (),
) -> Iterator[Execution]:
    """Open an execution with its own launcher, whose log files start with `log`; record in MLflow how the block
    ended, for a `smoke` run in an experiment of its own."""
    # claims are released after the launcher has ended its processes
    with (
        ExitStack() as claims,
        training.launcher.open(root, state_folder(root) / "logs" / f"{log}-{identifier}.log") as launcher,
    ):
        tracker = Tracker(root)
        planned = [{"step": step.label, "fingerprint": step.fingerprint} for step in plan.steps]
        parameters = execution_parameters(plan, prepared.name, variants, training, commit_of(root), smoke=smoke)
        tracker.begin_execution(
            identifier,
            plan.recipe.name,
            prepared.name,
            planned,
            store,
            smoke=smoke,
            parameters=parameters,
            data=sources(root, prepared),
        )
        context = Context(
            root=root,
            store=store,
            tracker=tracker,
            language=prepared.language,
            launcher=launcher,
            training=training,
            progress=progress,
            smoke=smoke,
        )
        under_way = Execution(identifier, plan, context, claims, began, parameters)
        try:
            yield under_way
        except BaseException as error:
            tracker.finish_execution("FAILED" if isinstance(error, Exception) else "KILLED", {})
            raise
        headline = headline_of(store, lineage_steps(plan))
        took = {"run/seconds": under_way.seconds, "run/computed": len(context.seconds)}
        tracker.finish_execution("FINISHED", {**headline.metrics, **took}, headline.tags)


def compute(plan: Plan, context: Context, cores: int, claims: ExitStack) -> None:
    """Compute the missing steps, parents first, independent steps in parallel.

    Small networks gain little from a second thread, so cores are divided among steps; a single step uses all of them. A
    step that another execution is computing is awaited, and then taken from the store.
    """
    stored = {step.fingerprint: artifact for step in plan.steps if (artifact := context.store.get(step.fingerprint))}
    for step in plan.steps:
        if step.fingerprint in stored:
            use_cached(step.label, whole(step), whole(stored[step.fingerprint]), whole(context))
    waiting = plan.missing(stored)
    running: list[tuple[PrefectFuture[None], Lock, str]] = []
    # not `future.state`, which queries Prefect's server, here ten times a second, and fails while that is unreachable
    ended: set[UUID] = set()
    elsewhere: set[str] = set()
    concurrent_jobs = context.training.concurrent_jobs(cores)
    while waiting or running:
        ready = [step for step in waiting if all(parent in context.artifacts for parent in step.parents.values())]
        # a step that has published its artifact computes no more, even if its Prefect task has not ended yet
        computing = len(running) - sum(fingerprint in context.artifacts for _, _, fingerprint in running)
        threads = max(1, cores // min(concurrent_jobs, computing + len(ready))) if ready else 1
        moved = False
        for step in ready:
            if computing == concurrent_jobs:
                break
            claim = context.store.claim(step.fingerprint)
            if claim is None:
                if step.fingerprint not in elsewhere:
                    elsewhere.add(step.fingerprint)
                    line = message(
                        "{step}: another run is computing this step; waiting for its result", step=step.label
                    )
                    context.progress.print_line(line)
                continue
            claims.callback(claim.release)
            moved = True
            waiting.remove(step)
            artifact = context.store.get(step.fingerprint)
            if artifact is not None:
                claim.release(delete=True)
                use_cached(step.label, whole(step), whole(artifact), whole(context))
            else:
                computing += 1
                future = run_step.submit(plan.name(step), whole(step), threads, whole(context))
                future.add_done_callback(lambda one: ended.add(one.task_run_id))
                running.append((future, claim, step.fingerprint))
        for one in [one for one in running if one[0].task_run_id in ended]:
            future, claim, _ = one
            moved = True
            running.remove(one)
            claim.release(delete=True)
            future.result()
        if not moved:
            time.sleep(WATCH_SECONDS)
