"""A project's own components: files in `parts/<family>/` that become members of the family like those shipped here.

    parts/objectives/focal.py      is imported as pipelines.parts.objectives.focal
    parts/cleaning/footers.py      is imported as pipelines.corpora.cleaning.footers

The folder is appended to the path of the family's package, so that own modules have names, identities and a closure of
imports as all others. Projects are CURSUS_ROOT, and the folder that holds `pipelines` itself: a checkout, or a model
that MLflow serves with the parts that it was trained with.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from pipelines.errors import RecipeError
from pipelines.shipped import shipped_folder

PARTS = "parts"
"""Folder of a project with one folder a family."""


def own_roots() -> list[Path]:
    """The `parts` folders that this process reads; those that exist."""
    named = os.environ.get("CURSUS_ROOT")
    roots = dict.fromkeys([shipped_folder(), *([Path(named).resolve()] if named else [])])
    return [folder for root in roots if (folder := root / PARTS).is_dir()]


def add_own_modules(package: ModuleType) -> None:
    """Let the import system look for modules of a family's package in the project's folder for it, too.

    RecipeError for a file that the package has itself.
    """
    family = package.__name__.rpartition(".")[2]
    for folder in (root / family for root in own_roots()):
        if folder.is_dir() and str(folder) not in package.__path__:
            for file in own_files(folder):
                if any((Path(one) / file.name).exists() for one in package.__path__):
                    raise RecipeError(f"{file}: {package.__name__} has a module of this name; rename the file")
            package.__path__.append(str(folder))


def own_files(folder: Path) -> Iterator[Path]:
    """Modules and packages directly in a folder, in order of their names."""
    for path in sorted(folder.iterdir()):
        if path.suffix == ".py" or (path / "__init__.py").is_file():
            yield path


def own_error(file: str | None, error: Exception) -> RecipeError | None:
    """`error`, which importing the module in `file` raised, as a sentence with its line; None for a shipped module."""
    path = next((root for root in own_roots() if file is not None and Path(file).is_relative_to(root)), None)
    if path is None or isinstance(error, RecipeError):
        return None
    line, trace = None, error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).is_relative_to(path):
            file, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename is not None:
        file, line = error.filename, error.lineno
    where = f"{file}:{line}" if line else file
    return RecipeError(f"{where}: this part cannot be imported: {type(error).__name__}: {error}")
