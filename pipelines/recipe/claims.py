"""A claim as a recipe: only the stages it compares and what they need, over its own number of seeds, and their comparison."""

from __future__ import annotations

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Claim, Recipe, Stage

COMPARISON = "comparison"
"""Name of the evaluate stage of a claim."""


def claim_of(recipe: Recipe, name: str) -> Claim:
    """The claim called `name`. Raises RecipeError when the recipe makes no such claim."""
    if name not in recipe.claims:
        raise RecipeError(f"recipe {recipe.name} makes no claim {name!r}.{did_you_mean(name, recipe.claims)}")
    return recipe.claims[name]


def recipe_of_claim(recipe: Recipe, name: str, seeds: int | None = None) -> Recipe:
    """The recipe that measures the claim `name`, over `seeds` seeds where given."""
    claim = claim_of(recipe, name)
    wanted = tuple(range(seeds or claim.seeds))
    stages = dict(recipe.stages)
    for compared in (claim.baseline, claim.system):
        stages[compared] = stages[compared].model_copy(update={"seeds": wanted})
    judged = {
        "name": Evaluation.default_name,
        "ladder": [claim.baseline, claim.system],
        "metric": claim.metric,
    }
    stages[COMPARISON] = Stage.model_validate(
        {"kind": Kind.EVALUATE, "start": [claim.baseline, claim.system], "corpus": "task", "suite": [judged]}
    )
    needed: set[str] = set()
    waiting = [COMPARISON]
    while waiting:
        stage = waiting.pop()
        if stage not in needed:
            needed.add(stage)
            waiting += [reference for reference in _references(stages[stage]) if "/" not in reference]
    return recipe.model_copy(update={"stages": {name: stage for name, stage in stages.items() if name in needed}})


def _references(stage: Stage) -> list[str]:
    start = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    named = [one if isinstance(one, str) else getattr(one, "untrained", None) for one in start]
    return [one for one in (*named, stage.teacher) if one is not None]
