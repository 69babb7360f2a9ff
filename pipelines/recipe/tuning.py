"""Tuned sides: the same small grid of settings for every compared stage of a claim, searched on validation.

    tune: {optimizer.lr: [1.0e-4, 3.0e-4, 1.0e-3], budget.epochs: [6, 12]}

    grid_recipe     every compared stage at every point, first seed      ──▶ validation scores
    with_choices    the recipe with every compared stage at its best point ──▶ the measurement, under all seeds

A published comparison gives its own system rates that were searched, and the baseline those of an earlier paper. Here
both sides have the same grid and the same search; the model of the chosen point under the first seed is one of the
measurement's, so that a search costs the other points only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel, ValidationError

from pipelines.components import Component, did_you_mean
from pipelines.errors import RecipeError
from pipelines.recipe.claim import Claim

if TYPE_CHECKING:
    from pipelines.recipe.schema import Recipe, Stage

Point: TypeAlias = Mapping[str, Any]
"""Key path of a stage → value: `{"optimizer.lr": 0.001}`."""
SHORT_KEYS = {"lr": "optimizer.lr", "epochs": "budget.epochs"}
"""Keys that a grid may give without the part that they belong to."""


def points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every point of a grid, the last key changing fastest."""
    keys = [SHORT_KEYS.get(key, key) for key in grid]
    return [dict(zip(keys, values, strict=True)) for values in product(*grid.values())]


def point_name(stage: str, number: int) -> str:
    """Name of the copy of a stage at a point of the grid."""
    return f"{stage}_point{number + 1}"


def at_point(stage: Stage, point: Point) -> Stage:
    """`stage` with the settings of a point. Raises RecipeError for a key that it does not have, or a wrong value."""
    for path, value in point.items():
        stage = _changed(stage, path.split("."), value, path)
    return stage


def grid_recipe(recipe: Recipe, name: str, stages: Sequence[str]) -> Recipe:
    """The recipe that trains each of `stages`, compared by the claim `name`, at every point under the first seed."""
    from pipelines.recipe.references import references

    copies = {
        point_name(stage, number): at_point(recipe.stages[stage], point).model_copy(update={"seeds": (0,)})
        for stage in stages
        for number, point in enumerate(points(recipe.claims[name].tune))
    }
    needed: dict[str, Stage] = {}
    pending = [one for stage in copies.values() for one in references(stage)]
    while pending:
        reference = pending.pop()
        if "/" not in reference and reference not in needed:
            stage = recipe.stages[reference]
            needed[reference] = stage.model_copy(update={"seeds": stage.seeds[:1]})
            pending += references(stage)
    before = {one: needed[one] for one in recipe.stages if one in needed}
    return recipe.model_copy(update={"stages": {**before, **copies}})


def with_choices(recipe: Recipe, choices: Mapping[str, Point]) -> Recipe:
    """The recipe with compared stages at their chosen points."""
    tuned = {stage: at_point(recipe.stages[stage], point) for stage, point in choices.items()}
    return recipe.model_copy(update={"stages": {**recipe.stages, **tuned}})


def check_tuning(recipe: Recipe, claim: Claim) -> str | None:
    """Why the compared stages of a claim cannot be tuned over its grid; None if they can, or if it has none."""
    grid = claim.tune
    for side in claim.form.sides() if grid else ():
        if side.stage not in recipe.stages:
            return f"stage {side.stage!r} is of another recipe, which has settings of its own; copy it to this one"
        stage = recipe.stages[side.stage]
        if stage.kind.reads_plain_text or not stage.trains:
            return (
                f"stage {side.stage!r} is not trained on labelled examples, so that no validation chooses its settings"
            )
        try:
            for point in points(grid):
                at_point(stage, point)
        except RecipeError as error:
            return f"stage {side.stage!r}: {error}"
    return None


def _changed(value: Any, path: Sequence[str], new: Any, whole: str) -> Any:
    """A copy of a model with one value changed, checked by the model itself."""
    key, *rest = path
    fields = type(value).model_fields if isinstance(value, BaseModel) else {}
    if key not in fields:
        raise RecipeError(f"there is no setting {whole!r}.{did_you_mean(key, fields)}")
    if rest:
        before = getattr(value, key)
        if isinstance(before, tuple) and len(before) == 1:  # a list of one entry is written without the list
            return value.model_copy(update={key: (_changed(before[0], rest, new, whole),)})
        return value.model_copy(update={key: _changed(before, rest, new, whole)})
    try:
        # a part is read by its family, which knows it by its name
        reader = value.family() if isinstance(value, Component) else type(value)
        checked = reader.model_validate({**value.model_dump(by_alias=True), key: new})
    except ValidationError as error:
        raise RecipeError(f"{whole}: {error.errors()[0]['msg']}, got {new!r}") from None
    return value.model_copy(update={key: getattr(checked, key)})
