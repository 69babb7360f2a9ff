"""Published systems: the entries of recipes/systems.yaml, and the recipe, stages and claims of each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from pipelines.errors import RecipeError
from pipelines.recipe.kinds import Kind
from pipelines.recipe.recipe_file import KeyPath, read_recipe
from pipelines.recipe.strict import StrictModel

if TYPE_CHECKING:
    from pipelines.recipe.schema import Recipe

SYSTEMS = "systems.yaml"
"""File in the folder of recipes that lists the systems; the only YAML file there that is not a recipe."""
OWN_KEYS = ("claims", "description", "systems", "system_stages")
"""Keys of a recipe that `like` does not inherit: a changed recipe states itself what it is, implements and claims."""


class PublishedSystem(StrictModel):
    """A published system, or a question of the same literature, that a recipe can implement."""

    id: str
    title: str
    """Title of the paper, or the name of the system."""
    year: int | None = None
    paper: str = ""
    """`arXiv:…` or `doi:…`; author and year where there is neither; empty where no paper is named."""
    shows: str
    """What a recipe of the system must show."""


@dataclass(frozen=True)
class Implementation:
    """A recipe of a system: the stages that are the system, and the claims about them."""

    recipe: Recipe
    stages: tuple[str, ...]
    claims: tuple[str, ...]


def read_systems(folder: Path) -> dict[str, tuple[PublishedSystem, ...]]:
    """Section → its systems, in the order of the file in `folder`; empty where `folder` has no such file.

    Raises RecipeError with file and line for anything misspelt or missing, and for an id that is given twice.
    """
    path = folder / SYSTEMS
    return _read_cached(path, path.stat().st_mtime_ns) if path.exists() else {}


def known_systems(folder: Path) -> dict[str, PublishedSystem]:
    """Id → system, in the order of the file in `folder`."""
    return {system.id: system for systems in read_systems(folder).values() for system in systems}


def find_system(folder: Path, name: str) -> PublishedSystem:
    """System with the id `name`. Raises RecipeError with the nearest id when there is none."""
    known = known_systems(folder)
    if name not in known:
        raise RecipeError(unknown_system(name, known))
    return known[name]


def unknown_system(name: str, known: Iterable[str]) -> str:
    """Message for an id that is not in the list: the nearest one, and where all are shown."""
    near = difflib.get_close_matches(name.lower(), list(known), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"there is no system {name!r} in {SYSTEMS}.{hint} `cursus systems` lists all."


def check_systems(recipe: Recipe, folder: Path) -> tuple[KeyPath, str] | None:
    """First mistake in a recipe's `systems` and `system_stages`: its key path and message; None when there is none.

    Ids are compared with the list in `folder`; without a list, as in a project of one's own, any id is accepted.
    """
    known = known_systems(folder)
    for index, name in enumerate(recipe.systems):
        if known and name not in known:
            return ("systems", str(index)), unknown_system(name, known)
        if name in recipe.systems[:index]:
            return ("systems", str(index)), f"{name!r} is given twice"
    for name, stages in recipe.system_stages.items():
        if name not in recipe.systems:
            return ("system_stages", name), f"{name!r} is not among the recipe's `systems`"
        for stage in stages:
            if stage not in recipe.stages:
                return ("system_stages", name), f"there is no stage {stage!r}; stages: {', '.join(recipe.stages)}"
    return None


def implementations(recipes: Iterable[Recipe]) -> dict[str, list[Implementation]]:
    """Id of a system → its implementations among `recipes`."""
    result: dict[str, list[Implementation]] = {}
    for recipe in recipes:
        for name in recipe.systems:
            implementation = Implementation(recipe, _stages(recipe, name), tuple(_claims(recipe, name)))
            result.setdefault(name, []).append(implementation)
    return result


def _stages(recipe: Recipe, name: str) -> tuple[str, ...]:
    """Stages that `system_stages` gives for a system, else those that claims call the system, else the stage that the
    last evaluate stage lists last."""
    if name in recipe.system_stages:
        return recipe.system_stages[name]
    claimed = tuple(dict.fromkeys(claim.form.subject for claim in recipe.claims.values()))
    if claimed:
        return claimed
    evaluated = [stage.start for stage in recipe.stages.values() if stage.kind is Kind.EVALUATE]
    lists = [start for start in evaluated if isinstance(start, tuple)]
    return (lists[-1][-1],) if lists else (list(recipe.stages)[-1],)


def _claims(recipe: Recipe, name: str) -> Iterator[str]:
    """Claims about a system: about one of its stages or, where there is no nearer one, about what starts from it; of a
    system that no claim is about, those that compare another stage with one of its own."""
    about = [label for label, claim in recipe.claims.items() if name in _subjects(recipe, claim.form.subject)]
    own = recipe.system_stages.get(name, ())
    compared = [
        label for label, claim in recipe.claims.items() if any(side.stage in own for side in claim.form.sides())
    ]
    yield from about or compared


def _subjects(recipe: Recipe, subject: str) -> list[str]:
    """The systems that a claim about the stage `subject` is about."""
    stage: str | None = subject
    owners: list[str] = []
    while stage in recipe.stages and not owners:
        owners = [one for one, stages in recipe.system_stages.items() if stage in stages]
        start = recipe.stages[stage].start
        stage = start if isinstance(start, str) else None
    return owners or [one for one in recipe.systems if one not in recipe.system_stages]


@lru_cache(maxsize=8)
def _read_cached(path: Path, modified: int) -> dict[str, tuple[PublishedSystem, ...]]:
    try:
        # without the lines of its keys, the file is read five times as fast
        values = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except (YAMLError, UnicodeDecodeError):
        values, _ = read_recipe(path)  # raises the error with its line
    if not isinstance(values, dict):
        raise RecipeError(f"{path}:1: expected a mapping of section titles to lists of systems")
    result: dict[str, tuple[PublishedSystem, ...]] = {}
    ids: set[str] = set()
    for section, entries in ((str(key), value) for key, value in values.items()):
        if not isinstance(entries, list):
            raise _error(path, (section,), "expected a list of systems")
        systems = []
        for index, entry in enumerate(entries):
            system = _system(path, (section, str(index)), entry)
            if system.id in ids:
                raise _error(path, (section, str(index)), f"the id {system.id!r} is given twice")
            ids.add(system.id)
            systems.append(system)
        result[section] = tuple(systems)
    return result


def _system(path: Path, key_path: KeyPath, entry: Any) -> PublishedSystem:
    try:
        return PublishedSystem.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        keys = ".".join(str(key) for key in first["loc"])
        raise _error(path, key_path, f"{keys + ': ' if keys else ''}{first['msg']}") from None


def _error(path: Path, key_path: KeyPath, message: str) -> RecipeError:
    _, locations = read_recipe(path)
    return RecipeError(f"{locations.get(key_path, path)}: {message}")
