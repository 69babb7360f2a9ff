"""Find stages that wait for each other: one that starts from, learns from or reads a stage that needs its result."""

from __future__ import annotations

from collections.abc import Iterator

from pipelines.recipe.schema import Recipe, Stage
from pipelines.recipe.starts import Untrained


def circular_stages(recipe: Recipe) -> tuple[str, str, str] | None:
    """Stage, key and message of the first circle of stages of a recipe; None where there is none."""
    finished = set[str]()
    for name in recipe.stages:
        if (circle := _circle(recipe, name, {}, finished)) is not None:
            return circle
    return None


def _circle(recipe: Recipe, name: str, path: dict[str, str], finished: set[str]) -> tuple[str, str, str] | None:
    """Depth-first search from a stage. `path`: stages on the way here, and the key by which each needs the next."""
    for key, needed in _needs(recipe.stages[name]):
        if needed not in recipe.stages or needed in finished:
            continue
        if needed in path or needed == name:
            names = [*path, name]
            circle = [*names[names.index(needed) :], needed]
            return name, key, f"circular stages: {' → '.join(circle)}; each would need the result of the next"
        if (circle_below := _circle(recipe, needed, {**path, name: key}, finished)) is not None:
            return circle_below
    finished.add(name)
    return None


def _needs(stage: Stage) -> Iterator[tuple[str, str]]:
    """Key and name of every stage that a stage needs."""
    starts = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    for start in starts:
        reference = start.untrained if isinstance(start, Untrained) else start
        if isinstance(reference, str):
            yield "start", reference
    if stage.teacher is not None:
        yield "teacher", stage.teacher
    for name, line in stage.lines.items():
        if line.teacher is not None:
            yield f"lines.{name}.teacher", line.teacher
    for source in stage.features:
        yield "features", source.from_
