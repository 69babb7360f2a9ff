"""Further draws of pre-training: a claim about it repeats the stages before what it compares under other seeds.

    general@0 ─ classify@0,1,2           the recipe
    general@1 ─ classify@0,1,2           its second draw: `general_draw2`, `classify_draw2`
    general@2 ─ classify@0,1,2           its third

Draws are copies of stages, so that store, tracking and reports treat them as any other, and a fingerprint does not
depend on the name of a stage: a lattice or another claim that trains `general` with seed 1 shares it. Fine-tuning seeds
are the same after every draw: draws and seeds are crossed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pipelines.errors import RecipeError
from pipelines.parts.annotations import ModelAnnotation
from pipelines.recipe.model_annotations import with_models
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Untrained

if TYPE_CHECKING:
    from pipelines.judging.attacks import Attack, ModelAttack

Stages: TypeAlias = Callable[[str], Mapping[str, Stage]]
"""Name of a recipe → its stages."""


def draw_name(stage: str, draw: int) -> str:
    """Name of the copy of a stage in a draw; 0 is the stage itself."""
    return f"{stage.replace('/', '.')}_draw{draw + 1}" if draw else stage


def further_draws(
    recipe: str, stages: Mapping[str, Stage], others: Stages, compared: Sequence[str], draws: int
) -> dict[str, Stage]:
    """The copies of `compared`, and of the stages before them, in every draw but the first.

    A compared stage before which nothing is drawn has no copy: random weights, a checkpoint, or counts. `stages` are
    those of `recipe` with the compared ones as they are measured. Raises RecipeError where no stage has a copy.
    """
    result: dict[str, Stage] = {}
    for draw in range(1, draws):
        one = _Draw(recipe, stages, others, draw)
        for stage in compared:
            one.compare(stage)
        result |= one.copies
    if draws > 1 and not any(draw_name(stage, 1) in result for stage in compared):
        raise RecipeError(
            f"draws: {draws}: nothing before {', '.join(compared)} is drawn, so that a further draw would train the "
            "same models; leave it out"
        )
    return result


class _Draw:
    """Copies of stages in one draw."""

    def __init__(self, recipe: str, stages: Mapping[str, Stage], others: Stages, draw: int) -> None:
        self.recipe, self.stages, self.others, self.draw = recipe, stages, others, draw
        self.copies: dict[str, Stage] = {}
        self._known: dict[str, str] = {}

    def compare(self, reference: str) -> None:
        """Copy a compared stage, whose own seeds stay, if anything before it has a copy."""
        owner, _, name = reference.rpartition("/")
        stage = self.stages[reference] if reference in self.stages else self._of(owner)[name]
        changed = self._reading(stage, owner or self.recipe)
        if changed is not None:
            self.copies[draw_name(reference, self.draw)] = changed

    def redrawn(self, reference: str) -> str:
        """The name of the copy of a stage before a compared one; its own where nothing of it is drawn."""
        if reference not in self._known:
            owner, _, name = reference.rpartition("/")
            stage = self._of(owner)[name]
            changed = self._reading(stage, owner or self.recipe)
            if changed is None and not stage.draws:
                self._known[reference] = reference
            else:
                copy = changed or _renamed(stage, lambda one: self._full(one, owner or self.recipe))
                self._known[reference] = draw_name(reference, self.draw)
                self.copies[self._known[reference]] = copy.model_copy(update={"seeds": (stage.seeds[0] + self.draw,)})
        return self._known[reference]

    def _reading(self, stage: Stage, owner: str) -> Stage | None:
        """`stage` over the copies of what it continues and reads; None where none of these has one."""
        before: list[str] = []

        def rename(reference: str) -> str:
            full = self._full(reference, owner)
            new = self.redrawn(full)
            if new != full:
                before.append(new)
            return new

        changed = _renamed(stage, rename, shape=lambda one: self._full(one, owner))
        return changed if before else None

    def _full(self, reference: str, owner: str) -> str:
        """A reference of a stage of `owner`, as the recipe of the claim writes it."""
        named, _, stage = reference.rpartition("/")
        full = named or owner
        return stage if full == self.recipe else f"{full}/{stage}"

    def _of(self, owner: str) -> Mapping[str, Stage]:
        return self.others(owner) if owner and owner != self.recipe else self.stages


def _renamed(stage: Stage, rename: Callable[[str], str], shape: Callable[[str], str] | None = None) -> Stage:
    """`stage` with every stage that it names renamed; random weights take a shape, by `shape`, and nothing drawn."""

    def reading(role: str, one: ModelAnnotation) -> ModelAnnotation:
        return one.model_copy(update={"from_": rename(one.from_)})

    start: Any = stage.start
    if isinstance(start, str):
        start = rename(start)
    elif isinstance(start, Untrained):
        start = Untrained(untrained=(shape or rename)(start.untrained))
    changes: dict[str, Any] = {
        "start": start,
        "head_start": None if stage.head_start is None else rename(stage.head_start),
        "teacher": None if stage.teacher is None else rename(stage.teacher),
        "features": tuple(one.model_copy(update={"from_": rename(one.from_)}) for one in stage.features),
        "augmentation": tuple(
            one.model_copy(update={"attack": one.attack.model_copy(update={"from_": rename(_model_of(one.attack))})})
            if one.attack.reads_model
            else one
            for one in stage.augmentation
        ),
        "lines": {
            name: line if line.teacher is None else line.model_copy(update={"teacher": rename(line.teacher)})
            for name, line in stage.lines.items()
        },
    }
    return with_models(stage.model_copy(update=changes), reading)


def _model_of(attack: Attack) -> str:
    return cast("ModelAttack", attack).from_
