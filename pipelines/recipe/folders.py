"""Where recipes are: in the project's folder, and, where a project has its own, in the one that comes with the code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pipelines.recipe.systems import SYSTEMS
from pipelines.shipped import shipped_folder

RECIPES = "recipes"


@dataclass(frozen=True)
class RecipeFolders:
    """Folders of recipes; a recipe of the first one is taken before another of the same name."""

    folders: tuple[Path, ...]

    @classmethod
    def of_project(cls, root: Path) -> RecipeFolders:
        """The recipes of the project in `root`, and those that come with the code."""
        return cls(tuple(dict.fromkeys([(root / RECIPES).resolve(), (shipped_folder() / RECIPES).resolve()])))

    @property
    def files(self) -> Mapping[str, Path]:
        """Sorted name → file."""
        files: dict[str, Path] = {}
        for folder in self.folders:
            with suppress(FileNotFoundError, NotADirectoryError):
                names = (name for name in os.listdir(folder) if name.endswith(".yaml") and name != SYSTEMS)
                files = {name.removesuffix(".yaml"): folder / name for name in names} | files
        return dict(sorted(files.items()))

    @property
    def systems(self) -> Path:
        """The folder with the list of published systems; the first one where none has it."""
        return next((folder for folder in self.folders if (folder / SYSTEMS).exists()), self.folders[0])
