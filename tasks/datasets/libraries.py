"""Settings of datasets and the recipes over them, read once for each state of their files.

Planning all claims of a project needs the same ones a thousand times: without this it takes minutes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from pipelines.corpora.settings.dataset import FILE, DatasetSettings, load_settings
from pipelines.recipe.folders import FILE_SUFFIXES, SUFFIX, RecipeFolders
from pipelines.recipe.load import Library, RecipeOptions
from pipelines.recipe.problems import Setting
from pipelines.recipe.schema import Recipe

_State: TypeAlias = tuple[tuple[str, int, int], ...]
"""Path, time of the last change in nanoseconds, and bytes of every file of settings and of recipes."""


def settings_of(root: Path) -> Mapping[str, DatasetSettings]:
    """Settings of the datasets of a project by name. Raises RecipeError like `load_settings`."""
    if not (root / FILE).exists():
        return load_settings(root)  # which says what to do
    return _settings_of(root, _state_of(root))


def recipes_for(root: Path, dataset: str) -> Library:
    """The recipe library, in which the dataset's own recipe has the variants and budget that the dataset configures,
    also when another recipe refers to its models."""
    return _recipes_for(root, dataset, _state_of(root))


def recipes_of(root: Path) -> Library:
    """The recipe library of a project, in which every recipe is as its file has it."""
    return _recipes_of(root, _state_of(root))


def setting_of_dataset(root: Path, dataset: str) -> Setting:
    """What a recipe is checked against on a dataset."""
    settings = settings_of(root)[dataset]
    return Setting(
        family=settings.main.family.name,
        language=settings.language,
        corpora={name: corpus.columns for name, corpus in settings.corpora.items()},
        tasks={name: task.family.name for name, task in settings.tasks.items()},
    )


class _ReadOnce(Library):
    """A library of files that do not change: each recipe is read and checked once."""

    def __init__(self, folders: RecipeFolders, options: Mapping[str, RecipeOptions] | None = None) -> None:
        super().__init__(folders, options)
        self._loaded: dict[str, Recipe] = {}

    def load(
        self,
        name: str,
        variants: Sequence[str] | None = None,
        budget: Mapping[str, Any] | None = None,
        setting: Setting | None = None,
    ) -> Recipe:
        if name.endswith(FILE_SUFFIXES):  # a file somewhere else, which may change
            return super().load(name, variants, budget, setting)
        key = repr((name, variants, budget, setting))
        if key not in self._loaded:
            self._loaded[key] = super().load(name, variants, budget, setting)
        return self._loaded[key]


def _state_of(root: Path) -> _State:
    settings = os.stat(root / FILE)
    files = [(FILE, settings.st_mtime_ns, settings.st_size)]
    for folder in filter(os.path.isdir, RecipeFolders.of_project(root).folders):
        with os.scandir(folder) as entries:
            recipes = [
                (entry.path, entry.stat()) for entry in entries if entry.name.endswith(SUFFIX) and entry.is_file()
            ]
        files += sorted((path, state.st_mtime_ns, state.st_size) for path, state in recipes)
    return tuple(files)


@lru_cache(maxsize=2)
def _settings_of(root: Path, state: _State) -> Mapping[str, DatasetSettings]:
    return load_settings(root)


@lru_cache(maxsize=64)
def _recipes_for(root: Path, dataset: str, state: _State) -> Library:
    chosen = _settings_of(root, state)[dataset]
    return _ReadOnce(
        RecipeFolders.of_project(root), {chosen.recipe: RecipeOptions(tuple(chosen.variants), chosen.budget)}
    )


@lru_cache(maxsize=2)
def _recipes_of(root: Path, state: _State) -> Library:
    return _ReadOnce(RecipeFolders.of_project(root))
