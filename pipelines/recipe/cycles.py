"""Find stages that wait for each other: one that starts from, learns from or reads a stage that needs its result."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from pipelines.recipe.model_annotations import read_models
from pipelines.recipe.schema import Recipe, Stage
from pipelines.recipe.starts import Untrained


def circular_stages(recipe: Recipe) -> tuple[str, str, str] | None:
    """Stage, key and message of a circle of stages of a recipe, from its first stage on; None where there is none."""
    needs = {name: {needed: key for key, needed in _needs(stage)} for name, stage in recipe.stages.items()}
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = error.args[1][:0:-1]  # each needs the next; the sorter says who is needed first, and repeats one
        first = min(range(len(circle)), key=lambda at: list(recipe.stages).index(circle[at]))
        circle = [*circle[first:], *circle[:first], circle[first]]
        message = f"circular stages: {' → '.join(circle)}; each would need the result of the next"
        return circle[0], needs[circle[0]][circle[1]], message
    return None


def _needs(stage: Stage) -> Iterator[tuple[str, str]]:
    """Key and name of every stage that a stage needs."""
    starts = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    for start in starts:
        reference = start.untrained if isinstance(start, Untrained) else start
        if isinstance(reference, str):
            yield "start", reference
    if stage.head_start is not None:
        yield "start", stage.head_start
    if stage.teacher is not None:
        yield "teacher", stage.teacher
    for name, line in stage.lines.items():
        if line.teacher is not None:
            yield f"lines.{name}.teacher", line.teacher
    for source in stage.features:
        yield "features", source.from_
    for _, key, annotation in read_models(stage):
        yield key, annotation.from_
