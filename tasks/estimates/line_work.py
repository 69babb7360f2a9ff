"""Work of a step with several lines: that of each line alone, added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from pipelines.recipe.lines import line_views
from pipelines.task_families.labelled_tables import read_as

if TYPE_CHECKING:
    from tasks.estimates.work import KnownStep, Work


def lines_of_step(one: KnownStep) -> list[KnownStep]:
    """The lines of a step as steps of their own: each with its tables, and an equal part of a budget in tokens."""
    views, budget = line_views(one.stage), one.stage.budget
    part = budget.tokens // len(views) if budget.tokens is not None else None
    trained = (one.trained[0] // len(views), one.trained[1] // len(views)) if one.trained else None
    backbone = {} if one.stage.backbone is None else {"backbone": one.stage.backbone}
    return [
        replace(
            one,
            stage=view.model_copy(update={"budget": budget.model_copy(update={"tokens": part}), **backbone}),
            data={table: source for table, source in one.data.items() if read_as(table) in view.corpus},
            trained=trained,
        )
        for view in views.values()
    ]


def summed(parts: Sequence[Work]) -> Work:
    """The work of all `parts`; they train one backbone, so its layers count once."""
    amounts: dict[str, Any] = {
        field.name: sum(getattr(part, field.name) for part in parts) for field in fields(parts[0])
    }
    return replace(parts[0], **{**amounts, "layers": max(part.layers for part in parts)})
