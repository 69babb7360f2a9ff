"""Check that a student has the layers, the width and the heads that match those of its teacher, and its task."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.networks.shape import NetworkShape
from pipelines.recipe.compressing import continued_stages
from pipelines.recipe.lines import line_views
from pipelines.recipe.problems import Problem, Setting, listed
from pipelines.recipe.schema import Stage
from pipelines.recipe.tables import task_words
from pipelines.recipe.teacher_signals import signals_of_teacher
from pipelines.vocabulary import OVER_VOCABULARY, PER_ITEM, Signal

OF_LABELS = (PER_ITEM - {Signal.POOLED}) | {Signal.TAG_LOGITS, Signal.SPAN_LOGITS}
"""Signals whose meaning depends on the labels of a task."""


def check_match(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """First reason why a stage cannot match its teacher; None when there is none. What a recipe does not state, as of
    checkpoints, is compared before training."""
    for name, view in line_views(stage).items():
        if view.teacher is None:
            continue
        teacher = resolve(view.teacher)
        line = f"lines.{name}." if name else ""
        shapes = shape_of(stage, resolve), shape_of(teacher, resolve, view.teacher)
        for objective in view.objective:
            if objective.needs_teacher and (reason := objective.unfit(*shapes)) is not None:
                own = name and stage.lines[name].objective is not None
                return f"{line if own else ''}objective", f"{objective.name}: {reason}"
        if (reason := _other_task(view, teacher)) is not None:
            return f"{line if name and stage.lines[name].teacher else ''}teacher", reason
    return None


def shape_of(stage: Stage, resolve: Callable[[str], Stage], reference: str = "") -> NetworkShape:
    """The shape of the network that a stage produces, which another names by `reference`."""
    if stage.backbone is None:
        return NetworkShape()
    shape = stage.backbone.shape
    chain = [stage, *(parent for _, parent in continued_stages(stage, resolve, reference.rpartition("/")[0]))]
    for compression in (one for parent in reversed(chain) for one in parent.compression):
        shape = compression.shape_after(shape)
    return shape


def _other_task(student: Stage, teacher: Stage) -> str | None:
    """Why a teacher cannot say what is right in the task of its student; None if it can, or answers none."""
    matched = {signal for one in student.objective if one.needs_teacher for signal in signals_of_teacher(one)}
    tasks = task_words(student.corpus, Setting())
    if student.kind.reads_plain_text or not tasks or not matched & (OF_LABELS - OVER_VOCABULARY):
        return None
    views = [view for view in line_views(teacher).values() if view.head is not None and view.head.reads]
    known = {word for view in views for word in task_words(view.corpus, Setting())}
    if not known or set(tasks) & known:
        return None
    return (
        f"{student.teacher} was trained on {listed(known)}, and this stage on {listed(tasks)}: its "
        f"{listed(matched & OF_LABELS)} are of other labels; name a teacher of the same task"
    )
