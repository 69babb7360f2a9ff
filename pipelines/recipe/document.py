"""A recipe file on its way to a recipe: its values, and the line where each key was written."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from pipelines.errors import RecipeError
from pipelines.recipe.merging import merged
from pipelines.recipe.recipe_file import KeyPath

VARIANTS = "variants"
"""Key of a recipe file with its variants."""


@dataclass
class Document:
    """Values of a recipe file after `like` and variants are applied, with the location of each key."""

    name: str
    values: dict[str, Any]
    locations: dict[KeyPath, str] = field(default_factory=dict)
    """Key path → `file:line` where it was written."""
    varied: set[KeyPath] = field(default_factory=set)
    """Key paths that a variant sets."""

    def error(self, path: KeyPath, message: str) -> RecipeError:
        """Error whose message starts with the file and line of the longest known prefix of `path`."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.locations:
                key = ".".join(path)
                return RecipeError(f"{self.locations[path[:end]]}: {key + ': ' if key else ''}{message}")
        return RecipeError(f"recipe {self.name}: {message}")

    def written(self, key_path: KeyPath, location: KeyPath) -> KeyPath:
        """The beginning of `location`, below `key_path`, that is written in the file: pydantic puts names of union
        branches into it."""
        while location and not any(
            path[: len(key_path) + len(location)] == (*key_path, *location) for path in self.locations
        ):
            location = location[:-1]
        return location


def overlay(document: Document, stages: Any, locations: Mapping[KeyPath, str], prefix: KeyPath) -> None:
    """Merge `stages` (a mapping of partial stages) into the document's, and record the location of each key."""
    if not isinstance(stages, dict):
        raise document.error(prefix, "expected a mapping of stage names to changes")
    for name, changes in stages.items():
        target = document.values["stages"].get(name)
        if changes is None:
            document.values["stages"].pop(name, None)
            continue
        if not isinstance(changes, dict):
            where = locations.get((*prefix, name), document.name)
            raise RecipeError(f"{where}: {'.'.join((*prefix, name))}: a stage must be a mapping, got {changes!r}")
        if not isinstance(target, dict) or "kind" in changes:
            document.values["stages"][name] = deepcopy(changes)
        else:
            for key, value in changes.items():
                target[key] = deepcopy(merged(key, target.get(key), value))
        for path, where in locations.items():
            if path[: len(prefix) + 1] == (*prefix, name):
                document.locations[("stages", *path[len(prefix) :])] = where
                if prefix[0] == VARIANTS:
                    document.varied.add(("stages", *path[len(prefix) :]))
