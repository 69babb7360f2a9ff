"""Reduce a recipe to one of its claims: the compared stages with their ancestors and seeds, and the comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.judging.claims import ComparedSide
from pipelines.recipe.claim import SEEDS, Claim
from pipelines.recipe.draws import Stages, draw_name, further_draws
from pipelines.recipe.figures import FigureSource, required, source_of
from pipelines.recipe.lines import line_views
from pipelines.recipe.problems import Problem, Setting, listed
from pipelines.recipe.recipe_file import KeyPath
from pipelines.recipe.references import references
from pipelines.recipe.schema import MOST_SEEDS, Recipe, Stage
from pipelines.recipe.tables import task_words
from pipelines.recipe.tuning import check_tuning
from pipelines.task_families.labelled_tables import MAIN

COMPARISON = "comparison"
"""Name of the judging stage that is added for a claim."""


@dataclass(frozen=True)
class Measurement:
    """A part of a claim that one plan measures: stages that are trained on one dataset, and judged on one."""

    trained: str
    """Dataset on which the stages are trained."""
    judged: str
    """Dataset on which they are judged."""
    task: str
    """Task of the dataset that they answer; empty for language models."""
    stages: tuple[str, ...]
    """The compared stages, the best of the claim last."""

    @property
    def items(self) -> str:
        """Name of the examples on which the stages are judged."""
        return f"{self.judged}/{self.task}"


def claim_of(recipe: Recipe, name: str) -> Claim:
    """Claim `name` of a recipe. Raises RecipeError when there is no such claim."""
    if name not in recipe.claims:
        raise RecipeError(f"recipe {recipe.name} has no claim {name!r}.{did_you_mean(name, recipe.claims)}")
    return recipe.claims[name]


def claim_on(claim: Claim, data: Sequence[str]) -> Claim:
    """The claim on other datasets: `data` has the name of one, or `role=name` for each that changes.

    Raises RecipeError for a role that the claim's form does not have.
    """
    if not data:
        return claim
    roles = claim.form.roles if isinstance(claim.data, dict) or claim.form.several_datasets != "never" else ()
    named = [one.partition("=") for one in data]
    if not any(sign for _, sign, _ in named):
        if len(data) > 1 or claim.form.several_datasets == "always":
            expected = f"--data {' --data '.join(f'{role}=NAME' for role in roles)}" if roles else "one --data NAME"
            raise RecipeError(f"a claim of the form {claim.form.name} takes {expected}, got {', '.join(data)}")
        return claim.model_copy(update={"data": data[0]})
    if wrong := next((role or name for role, sign, name in named if not sign or role not in roles), None):
        known = f"its roles are {', '.join(roles)}" if roles else "it is about one dataset"
        raise RecipeError(f"a claim of the form {claim.form.name} has no role {wrong!r}: {known}")
    before = claim.data if isinstance(claim.data, dict) else dict.fromkeys(roles, claim.data)
    return claim.model_copy(update={"data": {**before, **{role: name for role, _, name in named}}})


def measurements(recipe: Recipe, claim: Claim) -> dict[ComparedSide, Measurement]:
    """Side of a claim → the part that measures it; sides with the same data and task are of one part."""
    stages: dict[tuple[str, str, str], list[str]] = {}
    keys = {}
    for side in claim.form.sides():
        keys[side] = (claim.dataset(side.trained), claim.dataset(side.judged), _task(recipe, claim, side.stage))
        stages.setdefault(keys[side], []).insert(0, side.stage)
    return {side: Measurement(*key, tuple(dict.fromkeys(stages[key]))) for side, key in keys.items()}


def _task(recipe: Recipe, claim: Claim, stage: str) -> str:
    """The task on which a compared stage is judged; empty for a language model, and where it is not clear.

    That which the claim names may be one that the stage does not answer: a probe judges it all the same.
    """
    if claim.task:
        return claim.task
    answered = _answered(recipe, stage)
    if len(answered) < 2:
        return next(iter(answered), "")
    others = [_answered(recipe, side.stage) for side in claim.form.sides()]
    single = {one[0] for one in others if len(one) == 1 and one[0] in answered}
    return single.pop() if len(single) == 1 else ""


def _answered(recipe: Recipe, stage: str) -> list[str]:
    """The tasks that a stage answers, or what it continues; a stage of another recipe continues the main one."""
    value = recipe.compared(stage)
    views = [one for one in line_views(value).values() if not one.kind.reads_plain_text]
    words = list(dict.fromkeys(word for one in views for word in task_words(one.corpus, Setting())))
    if words or not views:
        return words
    return _answered(recipe, value.start) if value.start in recipe.stages and "/" not in stage else [MAIN]


def figure_source(recipe: Recipe, name: str, setting: Setting, stages: Sequence[str] = ()) -> FigureSource:
    """The figure of the claim `name`, and how it is measured of `stages` (default: all that it compares).

    Raises RecipeError where nothing records it for these stages on a dataset like `setting`.
    """
    claim = claim_of(recipe, name)
    compared = stages or compared_stages(claim)
    task = _task(recipe, claim, compared[0])
    source = source_of(claim, compared, task, recipe.compared, setting)
    return required(source, f"{recipe.name}/{name}")


def compared_stages(claim: Claim) -> tuple[str, ...]:
    """All stages that a claim compares, the best last."""
    return tuple(dict.fromkeys(side.stage for side in reversed(claim.form.sides())))


def seeds_of(claim: Claim, source: FigureSource, seeds: int | None = None) -> int:
    """Number of seeds of each compared stage: `seeds`, else that of the claim, else the default.

    Raises RecipeError for fewer than the claim's form needs.
    """
    number = seeds or claim.seeds or (1 if source.figure.exact else SEEDS)
    if source.figure.exact and claim.form.of_spread:
        raise RecipeError(f"no seed changes {source.figure.name}: a claim of the form {claim.form.name} needs another")
    if number < claim.form.fewest_seeds:
        raise RecipeError(f"a claim of the form {claim.form.name} needs {claim.form.fewest_seeds} seeds, got {number}")
    return number


def recipe_of_claim(
    recipe: Recipe,
    name: str,
    seeds: int | None = None,
    stages: Sequence[str] = (),
    setting: Setting | None = None,
    draws: int | None = None,
    library: Stages | None = None,
) -> Recipe:
    """Recipe that measures `stages` of the claim `name` (default: all that it compares) over `seeds` seeds and `draws`
    draws of pre-training (None: the numbers that the claim states), those of other recipes too.

    On a dataset like `setting`, baselines without a network are scored beside them, where there are any for its task.
    `library` has the stages of other recipes, which draws repeat. Raises RecipeError where nothing is drawn again.
    """
    claim = claim_of(recipe, name)
    compared = tuple(stages) or compared_stages(claim)
    source = figure_source(recipe, name, setting or Setting(), compared)
    number = seeds_of(claim, source, seeds)
    if number > MOST_SEEDS:
        raise RecipeError(f"{number:,} seeds are more than {MOST_SEEDS:,}, each of which trains every compared stage")
    seed_numbers = tuple(range(number))
    draw_count = 1 if source.figure.exact else draws or claim.draws
    every = dict(recipe.stages)
    others = dict(recipe.others)
    for stage in compared:
        owner = every if stage in every else others
        owner[stage] = owner[stage].model_copy(update={"seeds": seed_numbers})
    copies = further_draws(recipe.name, {**others, **every}, library or _unknown, compared, draw_count)
    every |= copies
    drawn = [one for stage in compared for draw in range(1, draw_count) if (one := draw_name(stage, draw)) in copies]
    pending = [stage for stage in (*compared, *drawn) if stage in every]
    if source.judging is not None:
        every[COMPARISON] = source.judging.model_copy(update={"start": (*drawn, *compared)})
        pending.append(COMPARISON)
    needed: set[str] = set()
    while pending:
        stage = pending.pop()
        if stage not in needed:
            needed.add(stage)
            pending += [reference for reference in references(every[stage]) if "/" not in reference]
    # of a stage that is started from, but not compared, only the first model is read
    kept_whole = {*compared, *drawn}
    first = {one: every[one].model_copy(update={"seeds": every[one].seeds[:1]}) for one in needed - kept_whole}
    kept = {one: first.get(one, stage) for one, stage in every.items() if one in needed}
    return recipe.model_copy(update={"stages": kept, "others": others})


def _unknown(owner: str) -> Mapping[str, Stage]:
    raise RecipeError(f"draws: the stages of the recipe {owner!r} are repeated, which are not known here")


def check_claim(recipe: Recipe, name: str, written: Any) -> tuple[KeyPath, str] | None:
    """First mistake of a claim: its key path and message, given its keys as written; None when there is none.

    Whether the dataset's task has the figure is checked when it is measured: a claim may be measured on any dataset.
    """
    claim = recipe.claims[name]
    for side in claim.form.sides():
        if side.stage not in recipe.stages and side.stage not in recipe.others:
            path = path_of(side.stage, written)
            message = f"there is no stage {side.stage!r}.{did_you_mean(side.stage, recipe.stages)}"
            return ("claims", name, *path), message
        answered = _answered(recipe, side.stage)
        if len(answered) > 1 and _task(recipe, claim, side.stage) not in answered:
            message = f"stage {side.stage!r} answers {listed(answered)}; name the one on which it is judged"
            return ("claims", name, "task"), message
    if unfit := check_tuning(recipe, claim):
        return ("claims", name, "tune"), unfit
    for part in measurements(recipe, claim).values():
        problem: FigureSource | Problem = source_of(claim, part.stages, part.task, recipe.compared, Setting())
        if not isinstance(problem, FigureSource):
            key, message = problem
            stated = "metric" if key == "figure" and isinstance(written, Mapping) and "metric" in written else key
            return ("claims", name, stated), message
    return None


def path_of(stage: str, written: Any) -> KeyPath:
    """Keys that lead to the first place where a claim names `stage`; empty where there is none."""
    entries = (
        written.items() if isinstance(written, Mapping) else enumerate(written) if isinstance(written, list) else ()
    )
    for key, value in entries:
        if value == stage and key not in ("data", "figure", "metric", "says", "published"):
            return (str(key),)
        if key != "data" and (path := path_of(stage, value)):
            return (str(key), *path)
    return ()
