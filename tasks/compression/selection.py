"""Which routes a time budget holds: the quickest first, each with what it continues."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.errors import CursusError
from pipelines.recipe.plan import Plan, Step
from pipelines.recipe.routes import Route, with_earlier

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m(?:in)?)?(?:(\d+(?:\.\d+)?)s)?")


def seconds_of(text: str) -> float:
    """`20m`, `90s`, `1h30m` in seconds. Raises CursusError for anything else, and for no time at all."""
    match = _DURATION.fullmatch(text.replace(" ", "").lower())
    hours, minutes, seconds = (float(one or 0) for one in match.groups()) if match else (0.0, 0.0, 0.0)
    total = 3600 * hours + 60 * minutes + seconds
    if not total:
        raise CursusError(f'--budget "{text}": write a time above zero with its unit, for example 20m, 90s or 1h30m')
    return total


@dataclass(frozen=True)
class RouteCost:
    """What a route takes, beside those that it continues."""

    route: Route
    seconds: float
    """Estimated time of its own steps that are not in the store, and of its share of the measurement."""
    todo: int
    """Steps among them."""


@dataclass(frozen=True)
class RouteSelection:
    """Routes to compute, in order, and those that the budget does not hold."""

    routes: tuple[Route, ...]
    seconds: float
    """All that the routes and their measurement take, estimated."""
    left_out: Mapping[str, float]
    """Route → the seconds that it would have added."""


def costs(
    routes: Sequence[Route], plan: Plan, stored: set[str], estimated: Mapping[str, float], each: float
) -> list[RouteCost]:
    """What each of `routes` takes: `estimated` are seconds by fingerprint, `each` those of measuring one model."""
    result = []
    for route in routes:
        own = [step for step in own_steps(route, plan) if step.fingerprint not in stored]
        result.append(RouteCost(route, sum(estimated[step.fingerprint] for step in own) + each, len(own)))
    return result


def own_steps(route: Route, plan: Plan) -> list[Step]:
    """The steps of a route's own stages."""
    return [step for step in plan.steps if step.name in route.stages and step.recipe == plan.recipe.name]


def select(routes: Sequence[RouteCost], fixed: float, budget: float | None) -> RouteSelection:
    """The routes that fit into `budget` seconds beside `fixed` ones, the quickest first; all of them without a budget.

    Raises CursusError where none fits.
    """
    known = {one.route.name: one.route for one in routes}
    seconds = {one.route.name: one.seconds for one in routes}
    taken: dict[str, Route] = {}
    total, left_out = fixed, dict[str, float]()
    while waiting := [name for name in known if name not in taken and name not in left_out]:
        # dearer once what it continues is not taken itself
        added = {name: _added(known[name], known, seconds, taken) for name in waiting}
        name = min(waiting, key=lambda one: added[one])
        if budget is not None and total + added[name] > budget:
            left_out |= added
            break
        total += added[name]
        taken |= {one.name: one for one in with_earlier(known[name], known)}
    if not taken:
        quickest = min(left_out, key=left_out.__getitem__)
        raise CursusError(
            f"--budget: {budget or 0:.0f} seconds hold no route; the quickest, {quickest}, takes about "
            f"{left_out[quickest] + fixed:.0f} with its measurement"
        )
    return RouteSelection(tuple(taken.values()), total, left_out)


def _added(route: Route, known: Mapping[str, Route], seconds: Mapping[str, float], taken: Mapping[str, Route]) -> float:
    """Seconds that a route adds to those that are taken, with what it continues."""
    return sum(seconds[one.name] for one in with_earlier(route, known) if one.name not in taken)
