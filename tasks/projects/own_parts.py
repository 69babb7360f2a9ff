"""Checks of what a project brings itself: settings, recipes, and parts, which are held to their contract."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipelines.components.own_parts import PARTS, own_files
from pipelines.corpora.settings.dataset import load_settings
from pipelines.errors import CursusError, RecipeError
from pipelines.recipe.catalogue import FAMILIES, members_of
from pipelines.recipe.contract import violations
from pipelines.recipe.folders import RECIPES, RecipeFolders
from pipelines.recipe.load import Library
from pipelines.recipe.schema import Recipe
from pipelines.recipe.systems import SYSTEMS
from tasks.datasets.planning import load_recipe, resolve_request


@dataclass(frozen=True)
class ProjectCheck:
    """One thing of a project, and what is wrong with it."""

    subject: str
    problems: tuple[str, ...]


def check_project(root: Path) -> Iterator[ProjectCheck]:
    """Check every own part and recipe, then the settings and the recipe of every dataset, of the project in `root`."""
    yield from _parts(root / PARTS)
    library = Library(RecipeFolders.of_project(root))
    for file in (path for path in sorted((root / RECIPES).glob("*.yaml")) if path.name != SYSTEMS):
        yield ProjectCheck(f"{RECIPES}/{file.name}", _problem(partial(library.load, file.stem)))
    problem = _problem(partial(load_settings, root))
    yield ProjectCheck("params.yaml", problem)
    for name in load_settings(root) if not problem else ():
        yield ProjectCheck(f"dataset {name} and its recipe", _problem(partial(_recipe_of, root, name)))


def _recipe_of(root: Path, dataset: str) -> Recipe:
    return load_recipe(root, resolve_request(root, dataset, None, (), False))


def _problem(attempt: Callable[[], object]) -> tuple[str, ...]:
    try:
        attempt()
    except CursusError as error:
        return (str(error),)
    return ()


def _parts(folder: Path) -> Iterator[ProjectCheck]:
    for entry in sorted(path for path in folder.glob("*") if path.is_dir()):
        if entry.name not in FAMILIES:
            if any(own_files(entry)):
                known = ", ".join(FAMILIES)
                yield ProjectCheck(f"{PARTS}/{entry.name}", (f"is no family of components; families: {known}",))
            continue
        yield from _members(entry)


def _members(folder: Path) -> Iterator[ProjectCheck]:
    try:
        members = members_of(folder.name)[1].values()
    except RecipeError as error:
        yield ProjectCheck(f"{PARTS}/{folder.name}", (str(error),))
        return
    for file in own_files(folder):
        own = [one for one in members if Path(inspect.getfile(one)).is_relative_to(file)]
        subject = f"{PARTS}/{folder.name}/{file.name}"
        if not own:
            yield ProjectCheck(subject, ('has no class of the family with a name: class …(…, name="…")',))
        for member in own:
            yield ProjectCheck(f"{subject}: {member.name}", tuple(violations(member)))
