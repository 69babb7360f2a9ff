"""The whole mission as one flow: data → general → domain → task-adaptive → fine-tune → compress → evaluate → register."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar, cast
from uuid import UUID

from prefect import flow
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.utilities.annotations import quote
from pydantic import BaseModel, ConfigDict, Field

from flows.outcome import kept
from pipelines.lineage.locks import Lock
from pipelines.lineage.store import Store
from pipelines.recipe.claims import narrowed
from pipelines.recipe.plan import Plan
from pipelines.training import hardware
from tasks.data_lock import data_in_use
from tasks.environment import prepare_environment, project_root, state_folder
from tasks.finish import publish_report, register_models, show_scores
from tasks.flow_runs import recorded, tell_ended
from tasks.planning import Request, make_plan, resolve_request, store_folder
from tasks.preparation import prepare_dataset
from tasks.progress import Progress
from tasks.showing import SHOWING
from tasks.stages import Context, run_step, use_cached
from tasks.tracking import Tracker
from tasks.training_settings import load_training

T = TypeVar("T")

WATCH_SECONDS = 0.1
"""Between two looks at what is running."""


class RegimeConfig(BaseModel):
    """What to train, on what. Everything else is in the recipe and in params.yaml."""

    model_config = ConfigDict(extra="forbid")

    dataset: str | None = Field(None, description="A dataset of params.yaml; its default when empty.")
    recipe: str | None = Field(None, description="A recipe of the folder recipes/; the dataset's own when empty.")
    variants: list[str] = Field([], description="Variants of the recipe, for example hour or minilm.")
    smoke: bool = Field(False, description="Tiny sizes and budgets: only proves that everything runs.")
    threads: int | None = Field(None, ge=1, description="Processor cores for training; all when empty.")
    until: str | None = Field(None, description="Stop after this stage; the whole recipe when empty.")
    claim: str | None = Field(None, description="Measure this claim of the recipe, and nothing else.")
    seeds: int | None = Field(None, ge=1, description="Seeds of the claim; its own number when empty.")


class RegimeResult(BaseModel):
    """What an execution left behind."""

    execution: str
    computed: list[str]
    cached: list[str]
    report: Path | None
    models: dict[str, str]
    """Registered model to version."""


def whole(value: T) -> T:
    """`value` for a task that is to take it as it is: Prefect would otherwise walk through it, and copy it, looking for futures."""
    return cast("T", quote(value))


def _run_name() -> str:
    """What the UI calls a run: what was asked for, in a few words."""
    config = RegimeConfig.model_validate(flow_run.parameters.get("config") or {})
    words = [
        config.recipe,
        config.claim and f"claim {config.claim}",
        config.dataset,
        *config.variants,
        "smoke" if config.smoke else None,
    ]
    asked = " ".join(word for word in words if word) or "defaults"
    return f"{asked} until {config.until}" if config.until else asked


@flow(name="regime", flow_run_name=_run_name, validate_parameters=True)
def regime(config: RegimeConfig = RegimeConfig()) -> RegimeResult:  # noqa: B008  # Prefect shows the defaults in its form
    """General → domain → task-adaptive → fine-tune → compress → evaluate: raw text to a registered, evaluated model."""
    return begin(lambda root: carry_out(_asked(config, root), root, threads=config.threads, until=config.until))


def begin(work: Callable[[Path], RegimeResult]) -> RegimeResult:
    """Do `work` in the project's folder as a flow run does: its environment, its record, and what it shows in Prefect."""
    root = project_root()
    prepare_environment(root)
    tell_ended(root)

    def watched() -> RegimeResult:
        with recorded(root):
            result = work(root)
            SHOWING.settle()
        return result

    return kept(watched)


def _asked(config: RegimeConfig, root: Path) -> Request:
    request = resolve_request(root, config.dataset, config.recipe, tuple(config.variants), config.smoke)
    if config.claim is None:
        return request
    return replace(request, reshaped=partial(narrowed, name=config.claim, seeds=config.seeds))


def carry_out(request: Request, root: Path, *, threads: int | None = None, until: str | None = None) -> RegimeResult:
    """Compute what is missing of `request`, judge, report; register what it ends in where the whole recipe was asked for."""
    training = load_training(root)
    store = Store(store_folder(root))
    with ExitStack() as opened:
        opened.enter_context(store.used())
        claims = opened.enter_context(ExitStack())  # let go after the launcher below has ended its processes
        progress = opened.enter_context(Progress())
        began, started = time.monotonic(), datetime.now(UTC)
        prepared = opened.enter_context(
            data_in_use(
                request.dataset,
                root,
                lambda: prepare_dataset(request.dataset, root, lambda step: progress.say(f"  {step}")),
                progress.say,
            )
        )
        plan = make_plan(root, request, prepared)
        if until is not None:
            plan = plan.ancestors(until)
        identifier = f"{started:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"
        launcher = opened.enter_context(
            training.launcher.open(root, state_folder(root) / "logs" / f"training-{identifier}.log")
        )
        tracker = Tracker(root)
        tracker.begin_execution(
            identifier,
            plan.recipe.name,
            request.dataset,
            [{"step": s.label, "fingerprint": s.fingerprint} for s in plan.steps],
            store,
        )
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
        try:
            compute(plan, context, threads or hardware.cores(), claims)
            entire = until is None and request.reshaped is None
            models = register_models(whole(plan), whole(context)) if entire else {}
            show_scores(whole(plan), whole(context))
            # last: an execution that has its report has done everything
            report = publish_report(
                identifier, whole(plan), whole(prepared), started, time.monotonic() - began, whole(context)
            )
        except BaseException as error:
            tracker.finish_execution("FAILED" if isinstance(error, Exception) else "KILLED", {})
            raise
        tracker.finish_execution("FINISHED", {"seconds": time.monotonic() - began, "computed": len(context.seconds)})
    return RegimeResult(
        execution=identifier,
        computed=[step.label for step in plan.steps if step.fingerprint in context.seconds],
        cached=[step.label for step in plan.steps if step.fingerprint not in context.seconds],
        report=report,
        models=models,
    )


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
    running: list[tuple[PrefectFuture[None], Lock]] = []
    # a future asked for its state would ask Prefect's server, ten times a second, and fail while that is away
    ended: set[UUID] = set()
    elsewhere: set[str] = set()
    at_once = context.training.at_once(cores)
    while waiting or running:
        ready = [step for step in waiting if all(parent in context.artifacts for parent in step.parents.values())]
        threads = max(1, cores // min(at_once, len(running) + len(ready))) if ready else 1
        moved = False
        for step in ready:
            if len(running) == at_once:
                break
            claim = context.store.claim(step.fingerprint)
            if claim is None:
                if step.fingerprint not in elsewhere:
                    elsewhere.add(step.fingerprint)
                    context.progress.say(f"{step.label}: another run is computing it; waiting for what it publishes")
                continue
            claims.callback(claim.release)
            moved = True
            waiting.remove(step)
            found = context.store.get(step.fingerprint)
            if found is not None:
                claim.release(forget=True)
                use_cached(step.label, whole(step), whole(found), whole(context))
            else:
                running.append((run_step.submit(plan.name(step), whole(step), threads, whole(context)), claim))
                running[-1][0].add_done_callback(lambda future: ended.add(future.task_run_id))
        for pair in [pair for pair in running if pair[0].task_run_id in ended]:
            future, claim = pair
            moved = True
            running.remove(pair)
            claim.release(forget=True)
            future.result()
        if not moved:
            time.sleep(WATCH_SECONDS)
