"""The plan of a request to compress: what each route is expected to take and to leave, before anything computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.judging.limits import megabytes
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.plan import Plan
from pipelines.recipe.routes import REPORT, TEACHER, Route
from pipelines.serving.runtimes import runtimes_by_name
from tasks.compression.request import CompressionRequest
from tasks.compression.selection import RouteCost, RouteSelection, costs, own_steps, select
from tasks.datasets.planning import make_plan
from tasks.datasets.prepared import Prepared
from tasks.estimates.duration import CONVERSION_SECONDS, RUN_SECONDS, WORKER_SECONDS, estimate_run
from tasks.estimates.machine_speed import slowness
from tasks.estimates.stored_bytes import expected_bytes

USUAL_RUNTIMES = 2
"""Runtimes in which a model that is not the teacher is measured, beside torch."""


@dataclass(frozen=True)
class PlannedRoute:
    """A route before it is computed."""

    route: Route
    bytes: float
    """Size of the folder that it leaves; exact where it is in the store."""
    seconds: float
    """Time of its own steps that are not in the store, and of its measurement."""
    todo: int
    taken: bool
    """Whether the budget holds it."""


@dataclass(frozen=True)
class CompressionPlan:
    """The routes that a budget holds, and all that were considered."""

    compression: CompressionRequest
    """The request with the routes that are taken."""
    plan: Plan
    stored: set[str]
    routes: tuple[PlannedRoute, ...]
    seconds: float
    left_out: Mapping[str, float]
    """Route that the budget does not hold → seconds that it would have added."""
    teacher_bytes: float

    @property
    def evaluation(self) -> str:
        """Fingerprint of the measurement of the routes that are taken."""
        return next(step.fingerprint for step in self.plan.steps if step.name == REPORT)

    @property
    def measured(self) -> bool:
        """Whether every step is in the store."""
        return not self.plan.missing(self.stored)


def plan_compression(
    root: Path,
    store: Store,
    compression: CompressionRequest,
    prepared: Prepared,
    budget: float | None,
    threads: int | None,
) -> CompressionPlan:
    """Choose the routes that `budget` seconds hold, of those that leave less than the model itself unless they were
    named. Raises CursusError where there is none."""
    plan = make_plan(root, compression.request, prepared)
    stored = {step.fingerprint for step in plan.steps if store.get(step.fingerprint)}
    steps = {step.fingerprint: step for step in plan.steps}
    folders = {fingerprint: store.folder(fingerprint) for fingerprint in stored}
    finals = {one.name: own_steps(one, plan)[-1] for one in compression.routes}
    sizes = {name: expected_bytes(step, steps, folders) for name, step in finals.items()}
    teacher = expected_bytes(next(step for step in plan.steps if step.name == TEACHER), steps, folders)
    if not compression.named:
        for_bytes = {one.name for one in compression.routes if one.saves == "bytes"}
        no_smaller = {name: _no_smaller(one) for name, one in sizes.items() if one >= teacher and name in for_bytes}
        compression = compression.without(no_smaller)
        plan = make_plan(root, compression.request, prepared)
    known, fixed = _costs(root, compression, plan, prepared, stored, list(store.all()), threads)
    finished = not plan.missing(stored)
    selection = RouteSelection(compression.routes, 0.0, {}) if finished else select(known, fixed, budget)
    taken = compression.only(selection.routes)
    smaller = make_plan(root, taken.request, prepared)
    return CompressionPlan(
        taken,
        smaller,
        {step.fingerprint for step in smaller.steps if step.fingerprint in stored or store.get(step.fingerprint)},
        tuple(
            PlannedRoute(one.route, sizes[one.route.name], one.seconds, one.todo, one.route in selection.routes)
            for one in known
        ),
        selection.seconds,
        selection.left_out,
        teacher,
    )


def _no_smaller(size: float) -> str:
    return f"about {megabytes(size)}, no smaller than the model"


def _costs(
    root: Path,
    compression: CompressionRequest,
    plan: Plan,
    prepared: Prepared,
    stored: set[str],
    records: Sequence[Provenance],
    threads: int | None,
) -> tuple[list[RouteCost], float]:
    """What each route takes, and the seconds that any run takes: its start, and measuring the teacher."""
    estimate = estimate_run(root, plan, prepared, stored, records, threads)
    seconds = {fingerprint: one.seconds for fingerprint, one in estimate.steps.items()}
    report = next(step for step in plan.steps if step.name == REPORT)
    conversion = CONVERSION_SECONDS * slowness()
    each = seconds[report.fingerprint] / len(report.parents) + USUAL_RUNTIMES * conversion
    available = sum(one.missing() is None for one in runtimes_by_name().values())
    fixed = (RUN_SECONDS + WORKER_SECONDS) * slowness() + each + available * conversion
    return costs(compression.routes, plan, stored, seconds, each), fixed
