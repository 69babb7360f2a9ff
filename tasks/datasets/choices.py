"""What a person can choose when a run is requested: the datasets of params.yaml, and what the recipes offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.components import discover
from pipelines.corpora.settings.dataset import load_settings, read_params
from pipelines.judging.claims import ClaimForm
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.outlines import Outline, outlines


@dataclass(frozen=True)
class Choices:
    """The names that the checkout's files define."""

    datasets: Mapping[str, str]
    """Dataset → its own recipe; the default dataset first."""
    recipes: tuple[str, ...]
    outlines: Mapping[str, Outline]
    """Recipe → its stages, variants and claims; without recipes that cannot be read."""
    roles: tuple[str, ...]
    """Roles of the datasets of claims about several."""


def choices(root: Path) -> Choices:
    """The choices of the checkout at `root`. Raises RecipeError for mistakes in params.yaml."""
    settings = load_settings(root)
    default = str(read_params(root).get("default_dataset", next(iter(settings))))
    ordered = sorted(settings, key=lambda name: name != default)
    folders = RecipeFolders.of_project(root)
    return Choices(
        datasets={name: settings[name].recipe for name in ordered},
        recipes=tuple(folders.files),
        outlines=outlines(folders),
        roles=_roles(),
    )


def _roles() -> tuple[str, ...]:
    discover(ClaimForm.__module__)
    forms = [form for form in ClaimForm.members.values() if issubclass(form, ClaimForm)]
    return tuple(dict.fromkeys(role for form in forms for role in form.roles))
