"""Check that the head of one stage can stand on the backbone of another."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.recipe.lines import line_views
from pipelines.recipe.problems import Problem, listed
from pipelines.recipe.schema import Stage
from pipelines.recipe.teaching import learned_vocabulary
from pipelines.vocabulary import OVER_VOCABULARY


def check_head_start(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """First problem of the stage whose head `stage` continues; None when there is none, or no such stage."""
    reference = stage.head_start
    if reference is None or not isinstance(stage.start, str):
        return None
    before = resolve(reference)
    if before.kind.judges:
        return "start.head", f"stage {reference!r} is of kind {before.kind} and produces no model; name one that does"
    if stage.lines:
        return "start.head", "a stage with lines continues the heads of its start; leave head out, or the lines"
    heads = [view.head for view in line_views(before).values() if view.head is not None]
    if stage.head is not None and stage.head.name not in {head.name for head in heads}:
        return (
            "start.head",
            f"{reference} has the head {listed({head.name for head in heads})}, and this stage {stage.head.name}: none "
            "of its weights could be continued; name a stage with that head",
        )
    if stage.head is None or stage.head.reads or not stage.head.provides & OVER_VOCABULARY:
        return None
    own, other = learned_vocabulary(stage, resolve), learned_vocabulary(before, resolve, reference)
    if own is not None and other is not None and own != other:
        return (
            "start.head",
            f"{stage.head.name} scores tokens, those of {reference} are {other}, and those of the backbone {own}: the "
            "same ids are other words; let both start from one stage",
        )
    return None
