"""What flows that compute have in common: how they begin, what an execution is made of, and how a plan is computed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast
from uuid import UUID

from prefect.futures import PrefectFuture
from prefect.utilities.annotations import quote
from pydantic import BaseModel

from flows.process.outcome import kept
from pipelines.lineage.locks import Lock
from pipelines.lineage.store import Store
from pipelines.recipe.plan import Plan
from tasks.datasets.prepared import Prepared
from tasks.display.artifacts import ARTIFACTS
from tasks.display.progress import TerminalProgress
from tasks.environment import project_root, state_folder
from tasks.launchers.settings import TrainingSettings
from tasks.servers.environment import prepare_environment
from tasks.servers.flow_runs import recorded, report_ended_runs
from tasks.stages.steps import Context, run_step, use_cached
from tasks.tracking.executions import Tracker

T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)

WATCH_SECONDS = 0.1
"""Between two looks at what is running."""


def whole(value: T) -> T:
    """`value` for a task that is to take it as it is: Prefect would otherwise walk through it, and copy it, looking for futures."""
    return cast("T", quote(value))


def begin(work: Callable[[Path], R]) -> R:
    """Do `work` in the project's folder as a flow run does: its environment, its record, and what it shows in Prefect."""
    root = project_root()
    prepare_environment(root)
    report_ended_runs(root)

    def watched() -> R:
        with recorded(root):
            result = work(root)
            ARTIFACTS.flush()
        return result

    return kept(watched)


@dataclass(frozen=True)
class Execution:
    """A plan that is being computed, and that MLflow is told of."""

    identifier: str
    plan: Plan
    context: Context
    claims: ExitStack
    began: float
    """time.monotonic() when what it counts began."""

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self.began

    def compute(self, cores: int) -> None:
        """Compute what is missing of the plan."""
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
) -> Iterator[Execution]:
    """An execution with a launcher of its own, whose files of log begin with `log`. MLflow is told how the block ended."""
    # claims are let go after the launcher has ended its processes
    with (
        ExitStack() as claims,
        training.launcher.open(root, state_folder(root) / "logs" / f"{log}-{identifier}.log") as launcher,
    ):
        tracker = Tracker(root)
        planned = [{"step": step.label, "fingerprint": step.fingerprint} for step in plan.steps]
        tracker.begin_execution(identifier, plan.recipe.name, prepared.name, planned, store)
        context = Context(
            root=root,
            store=store,
            tracker=tracker,
            tables=prepared.tables,
            language=prepared.language,
            launcher=launcher,
            training=training,
            progress=progress,
        )
        under_way = Execution(identifier, plan, context, claims, began)
        try:
            yield under_way
        except BaseException as error:
            tracker.finish_execution("FAILED" if isinstance(error, Exception) else "KILLED", {})
            raise
        tracker.finish_execution("FINISHED", {"seconds": under_way.seconds, "computed": len(context.seconds)})


def compute(plan: Plan, context: Context, cores: int, claims: ExitStack) -> None:
    """Compute what is missing, parents first, side by side where steps do not wait for each other.

    Small networks gain little from a second thread, so cores go to steps; a step that is alone has them all. A step that
    another execution is computing is waited for, and then taken from the store.
    """
    stored = {step.fingerprint: found for step in plan.steps if (found := context.store.get(step.fingerprint))}
    for step in plan.steps:
        if step.fingerprint in stored:
            use_cached(step.label, whole(step), whole(stored[step.fingerprint]), whole(context))
    waiting = plan.missing(stored)
    running: list[tuple[PrefectFuture[None], Lock, str]] = []
    # a future asked for its state would ask Prefect's server, ten times a second, and fail while that is away
    ended: set[UUID] = set()
    elsewhere: set[str] = set()
    concurrent_jobs = context.training.concurrent_jobs(cores)
    while waiting or running:
        ready = [step for step in waiting if all(parent in context.artifacts for parent in step.parents.values())]
        # a step that has published may still have to end for Prefect: it computes no more
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
                    context.progress.print_line(f"{step.label}: another run is computing it; waiting for what it publishes")
                continue
            claims.callback(claim.release)
            moved = True
            waiting.remove(step)
            found = context.store.get(step.fingerprint)
            if found is not None:
                claim.release(forget=True)
                use_cached(step.label, whole(step), whole(found), whole(context))
            else:
                computing += 1
                future = run_step.submit(plan.name(step), whole(step), threads, whole(context))
                future.add_done_callback(lambda one: ended.add(one.task_run_id))
                running.append((future, claim, step.fingerprint))
        for one in [one for one in running if one[0].task_run_id in ended]:
            future, claim, _ = one
            moved = True
            running.remove(one)
            claim.release(forget=True)
            future.result()
        if not moved:
            time.sleep(WATCH_SECONDS)
