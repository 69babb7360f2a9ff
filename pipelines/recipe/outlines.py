"""What the recipes of a folder offer by name: their stages, variants and claims, read without checking a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.errors import RecipeError
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.recipe_file import read_recipe


@dataclass(frozen=True)
class Outline:
    """Names in a recipe, those of the recipe that it is `like` included, in the order of the file."""

    stages: tuple[str, ...]
    variants: tuple[str, ...]
    claims: tuple[str, ...]


def outlines(folders: RecipeFolders) -> dict[str, Outline]:
    """Recipe → its names. A recipe that cannot be read is left out: loading it reports the error."""
    known, files = {}, folders.files
    for name in files:
        try:
            sections = _sections(files, name, ())
        except RecipeError:
            continue
        known[name] = Outline(*(tuple(sections[key]) for key in ("stages", "variants", "claims")))
    return known


def _sections(files: Mapping[str, Path], name: str, seen: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """The named entries of a recipe by section; an overlay that is null removes an entry that it would inherit."""
    if name in seen or name not in files:
        raise RecipeError(f"{name}: missing, or like itself")
    values, _ = read_recipe(files[name])
    other = values.get("like")
    inherited = _sections(files, other, (*seen, name)) if isinstance(other, str) else {}
    sections = {}
    for key in ("stages", "variants", "claims"):
        own = values.get(key)
        entries = {**inherited.get(key, {}), **(own if isinstance(own, Mapping) else {})}
        sections[key] = {entry: value for entry, value in entries.items() if value is not None}
    return sections
