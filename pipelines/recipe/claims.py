"""Reduce a recipe to one of its claims: the two compared stages with their ancestors and seeds, and the comparison."""

from __future__ import annotations

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Claim, Recipe, Stage

COMPARISON = "comparison"
"""Name of the evaluate stage that is added for a claim."""


def claim_of(recipe: Recipe, name: str) -> Claim:
    """Claim `name` of a recipe. Raises RecipeError when there is no such claim."""
    if name not in recipe.claims:
        raise RecipeError(f"recipe {recipe.name} has no claim {name!r}.{did_you_mean(name, recipe.claims)}")
    return recipe.claims[name]


def recipe_of_claim(recipe: Recipe, name: str, seeds: int | None = None) -> Recipe:
    """Recipe that measures the claim `name`, over `seeds` seeds (None: the number that the claim states)."""
    claim = claim_of(recipe, name)
    seed_numbers = tuple(range(seeds or claim.seeds))
    stages = dict(recipe.stages)
    for compared in (claim.baseline, claim.system):
        stages[compared] = stages[compared].model_copy(update={"seeds": seed_numbers})
    evaluation = {
        "name": Evaluation.default_name,
        "ladder": [claim.baseline, claim.system],
        "metric": claim.metric,
    }
    stages[COMPARISON] = Stage.model_validate(
        {"kind": Kind.EVALUATE, "start": [claim.baseline, claim.system], "corpus": "task", "suite": [evaluation]}
    )
    needed: set[str] = set()
    pending = [COMPARISON]
    while pending:
        stage = pending.pop()
        if stage not in needed:
            needed.add(stage)
            pending += [reference for reference in _references(stages[stage]) if "/" not in reference]
    return recipe.model_copy(update={"stages": {name: stage for name, stage in stages.items() if name in needed}})


def _references(stage: Stage) -> list[str]:
    start = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    named = [one if isinstance(one, str) else getattr(one, "untrained", None) for one in start]
    read = [source.from_ for source in stage.features]
    return [one for one in (*named, stage.teacher, *read) if one is not None]
