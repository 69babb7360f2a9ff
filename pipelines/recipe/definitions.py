"""What a stage computes, as a digest: to see which records are older than the code or the settings that they measured.

A fingerprint also covers data, seeds, libraries and the machine's precision, so that it differs between two machines
with the same code. A definition covers what is written in this project alone: settings and code.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.components import discover
from pipelines.errors import RecipeError
from pipelines.lineage.fingerprint import fingerprint
from pipelines.recipe.load import Library
from pipelines.recipe.plan import UNIDENTIFYING
from pipelines.recipe.references import references
from pipelines.recipe.schema import Recipe, Stage
from pipelines.recipe.stage_parts import code_of, computing_modules
from pipelines.task_families import TaskFamily

DIGITS = 16


def definitions(recipe: Recipe, library: Library, families: Sequence[str]) -> dict[str, str]:
    """Stage → digest, of every stage of `recipe` and, as `recipe/stage`, of those of other recipes that they read.

    `families` are those of the tasks of its data. Raises RecipeError for a stage that another recipe does not have.
    """
    discover(TaskFamily.__module__)
    modules = tuple(sorted({type(TaskFamily.model_validate(name)).__module__ for name in families}))
    result: dict[str, str] = {}
    recipes = {recipe.name: recipe}
    pending = [(recipe.name, name) for name in recipe.stages]
    while pending:
        owner, name = pending.pop()
        label = name if owner == recipe.name else f"{owner}/{name}"
        if label in result:
            continue
        if owner not in recipes:
            recipes[owner] = library.load(owner)
        if name not in recipes[owner].stages:
            raise RecipeError(f"recipe {owner} has no stage {name!r} any more")
        stage = recipes[owner].stages[name]
        result[label] = _definition(stage, modules)
        for reference in references(stage):
            other, _, named = reference.rpartition("/")
            pending.append((other or owner, named))
    return dict(sorted(result.items()))


def _definition(stage: Stage, families: tuple[str, ...]) -> str:
    answered = () if stage.kind.reads_plain_text else families
    settings = stage.model_dump(mode="json", exclude=UNIDENTIFYING)
    read = {"start": str(stage.start), "others": sorted(references(stage))}
    code = code_of((*computing_modules(stage), *answered))
    return fingerprint({"settings": settings, "read": read, "code": code})[:DIGITS]
