"""Where recipes are: in the project's folder, and, where a project has its own, in the one that comes with the code."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.recipe.systems import SYSTEMS
from pipelines.shipped import shipped_folder

RECIPES = "recipes"
SUFFIX = ".yaml"
FILE_SUFFIXES = (SUFFIX, ".yml")
"""Endings of the path of a recipe in a file of its own."""


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
        return {name: Path(path) for name, path in self._paths().items()}

    @property
    def names(self) -> list[str]:
        """Sorted names of the recipes."""
        return list(self._paths())

    def file(self, name: str) -> Path | None:
        """The file of a recipe; None when there is none."""
        path = self._paths().get(name)
        return None if path is None else Path(path)

    def _paths(self) -> dict[str, str]:
        # texts, not paths: while many recipes are planned they are listed a thousand times, and making a path of each
        # took half of the planning's time
        paths: dict[str, str] = {}
        for folder in filter(os.path.isdir, self.folders):
            for name in os.listdir(folder):
                if name.endswith(SUFFIX) and name != SYSTEMS:
                    paths.setdefault(name.removesuffix(SUFFIX), os.path.join(folder, name))
        return dict(sorted(paths.items()))

    @property
    def systems(self) -> Path:
        """The folder with the list of published systems; the first one where none has it."""
        return next((folder for folder in self.folders if (folder / SYSTEMS).exists()), self.folders[0])
