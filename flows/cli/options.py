"""Options that several commands share, and the completion of their values in a shell."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.errors import CursusError
from tasks.environment import project_root


def dataset_names(incomplete: str) -> list[str]:
    """Datasets of params.yaml that begin with `incomplete`; none where the file has a mistake."""
    from pipelines.corpora.settings.dataset import load_settings

    try:
        return [name for name in load_settings(project_root()) if name.startswith(incomplete)]
    except (CursusError, OSError):
        return []


def recipe_names(incomplete: str) -> list[str]:
    """Recipes that begin with `incomplete`."""
    from pipelines.recipe.folders import RecipeFolders

    return [name for name in RecipeFolders.of_project(project_root()).files if name.startswith(incomplete)]


def model_names(incomplete: str) -> list[str]:
    """Stages of the latest execution that begin with `incomplete`."""
    from tasks.models.default import executions

    latest = next(iter(executions(project_root())), None)
    stages = dict.fromkeys(str(step["stage"]) for step in latest["steps"]) if latest is not None else {}
    return [name for name in stages if name.startswith(incomplete)]


Dataset = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="A dataset of params.yaml. Its default, or one that the recipe was written for.",
        autocompletion=dataset_names,
    ),
]
Variants = Annotated[
    list[str] | None, typer.Option("--variant", help="A variant of the recipe, for example hour or minilm; repeatable.")
]
Model = Annotated[
    str | None,
    typer.Option(
        help="A registered model, a stage, a fingerprint's first digits, or a folder; the dataset's champion, or else "
        "its latest model, when not given.",
        autocompletion=model_names,
    ),
]
