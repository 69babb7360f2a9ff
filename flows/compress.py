"""The flow `compress`: routes to a smaller model, measured in the runtimes of this machine, and the form to serve."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from prefect import flow
from prefect.runtime import flow_run
from pydantic import BaseModel, ConfigDict, Field

from flows.process.computing import Execution, begin, compute, execution, whole
from flows.regime import dataset_in_use
from pipelines.errors import CursusError
from pipelines.judging.limits import EXAMPLE, Limits
from pipelines.lineage import hardware
from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.store import Store
from pipelines.messages.translation import message
from pipelines.recipe.plan import Plan
from pipelines.recipe.routes import REPORT, with_earlier
from pipelines.reports.sections.compression import WITHIN
from tasks.compression.answer import PICTURE, Measured, destination_of, keep
from tasks.compression.planning import CompressionPlan, plan_compression
from tasks.compression.request import compression_request, for_labels
from tasks.compression.selection import seconds_of
from tasks.datasets.planning import make_plan, store_folder
from tasks.datasets.prepared import Prepared
from tasks.display.progress import TerminalProgress
from tasks.launchers.settings import load_training
from tasks.stages.finish import publish_report, show_scores


class CompressConfig(BaseModel):
    """The model, what it may cost to serve, and how long the search may take."""

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(
        None,
        description="A stage, a registered model, a fingerprint or a classifier's folder; the champion if empty.",
    )
    within: str = Field(EXAMPLE, description=f"Limits of size, time and lost score, for example {EXAMPLE}.")
    budget: str | None = Field(None, description="Time for training and measuring, for example 20m; none when empty.")
    dataset: str | None = Field(None, description="A dataset of params.yaml; that of the model when empty.")
    routes: list[str] = Field([], description="Routes of recipes/routes; all that fit the model when empty.")
    runtimes: list[str] = Field(
        [], description="Serving runtimes to measure beside torch; all of the machine if empty."
    )
    to: str | None = Field(None, description="The folder to write; compressed/<model> when empty.")
    threads: int | None = Field(None, ge=1, description="Processor cores for training; all when empty.")


class CompressResult(BaseModel):
    """The answer."""

    decision: str
    within: bool
    """Whether something is within the limits."""
    folder: str
    """The folder with the chosen model."""
    report: Path
    evaluation: str
    """Fingerprint of the measurement."""
    routes: list[str]
    """Routes that were measured."""
    left_out: dict[str, str]
    """Route that was not → the reason."""


def _run_name() -> str:
    config = CompressConfig.model_validate(flow_run.parameters.get("config") or {})
    return f"compress {config.model or 'champion'} within {config.within}"


@flow(name="compress", flow_run_name=_run_name, validate_parameters=True)
# Prefect shows the defaults in its form
def compress(config: CompressConfig = CompressConfig()) -> CompressResult:  # noqa: B008
    """Published routes to a smaller model, every one measured: score against bytes and milliseconds, and a decision."""
    return begin(lambda root: _carry_out(config, root))


def _carry_out(config: CompressConfig, root: Path) -> CompressResult:
    limits = Limits.parse(config.within)
    budget = seconds_of(config.budget) if config.budget else None
    requested = compression_request(root, config.model, config.dataset, config.routes, config.runtimes)
    store, training = Store(store_folder(root)), load_training(root)
    with ExitStack() as opened:
        progress = opened.enter_context(TerminalProgress())
        opened.enter_context(store.shared(progress.print_line))
        began, started = time.monotonic(), datetime.now(UTC)
        prepared = opened.enter_context(dataset_in_use(requested.request.dataset, root, progress))
        requested = for_labels(requested, prepared, root)
        planned = plan_compression(root, store, requested, prepared, budget, config.threads)
        identifier = f"{started:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"
        with execution(
            identifier,
            planned.plan,
            prepared,
            root,
            store,
            training,
            progress,
            log="training",
            began=began,
            smoke=False,
        ) as under_way:
            deadline = None if budget is None else began + budget
            late = _train(planned, under_way, config.threads, deadline, progress.print_line)
            plan = _measure(planned, late, under_way, prepared, root, config.threads)
            show_scores(whole(plan), whole(under_way.context))
            report = publish_report(
                identifier,
                whole(plan),
                whole(prepared),
                started,
                under_way.seconds,
                whole({**under_way.parameters, WITHIN: config.within}),
                whole(under_way.context),
                measurement=True,
            )
            evaluation = next(step.fingerprint for step in plan.steps if step.name == REPORT)
            measured = Measured.read(store, evaluation)
            choice = measured.choose(limits)
            folder = destination_of(root, requested, config.to)
            keep(root, measured, choice, limits, folder, progress.print_line)
            write_text_atomically(report.with_name(PICTURE), measured.picture(limits, choice))
    return CompressResult(
        decision=measured.sentence(limits, choice),
        within=choice.within,
        folder=str(folder),
        report=report,
        evaluation=evaluation,
        routes=[one.name for one in planned.compression.routes if one.name not in late],
        left_out={**{name: f"{seconds:.0f} s more" for name, seconds in planned.left_out.items()}, **late},
    )


def _train(
    planned: CompressionPlan,
    under_way: Execution,
    threads: int | None,
    deadline: float | None,
    notify: Callable[[str], None],
) -> dict[str, str]:
    """Compute one route after the other until the time is up; returns why routes were left out.

    A route that fails leaves the others as they are. What remains of the time is compared with the estimates, corrected
    by how long the routes took so far.
    """
    left_out: dict[str, str] = {}
    routes = {one.name: one for one in planned.compression.routes}
    seconds = {one.route.name: one.seconds for one in planned.routes}
    estimated = taken = 0.0
    for route in routes.values():
        lost = next((one.name for one in with_earlier(route, routes) if one.name in left_out), None)
        needed = seconds[route.name] * (taken / estimated if estimated else 1.0)
        if lost is not None:
            left_out[route.name] = f"it continues {lost}"
        elif deadline is not None and time.monotonic() + needed > deadline and len(left_out) < len(routes) - 1:
            left_out[route.name] = "the time was up; the same command continues with it"
        else:
            started = time.monotonic()
            try:
                _compute(planned.plan.ancestors(route.name), under_way, threads)
            except CursusError as error:
                left_out[route.name] = str(error)
            else:
                estimated, taken = estimated + seconds[route.name], taken + time.monotonic() - started
        if route.name in left_out:
            notify(message("{name} was left out: {reason}", name=route.name, reason=left_out[route.name]))
    if len(left_out) == len(routes):
        raise CursusError(f"no route was computed. {'; '.join(f'{name}: {why}' for name, why in left_out.items())}")
    return left_out


def _measure(
    planned: CompressionPlan,
    left_out: dict[str, str],
    under_way: Execution,
    prepared: Prepared,
    root: Path,
    threads: int | None,
) -> Plan:
    """Judge the routes that were computed; returns the plan with them alone."""
    plan = planned.plan
    if left_out:
        kept = [one for one in planned.compression.routes if one.name not in left_out]
        plan = make_plan(root, planned.compression.only(kept).request, prepared)
    _compute(plan, under_way, threads)
    return plan


def _compute(plan: Plan, under_way: Execution, threads: int | None) -> None:
    """Compute the steps of `plan` that this execution has not computed."""
    known = under_way.context.artifacts
    missing = Plan(plan.recipe, tuple(step for step in plan.steps if step.fingerprint not in known))
    compute(missing, under_way.context, threads or hardware.cores(), under_way.claims)
