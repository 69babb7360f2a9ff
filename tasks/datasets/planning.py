"""Resolution of a request (a dataset, a recipe, variants) to a plan over prepared data. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.components import did_you_mean
from pipelines.corpora.settings.dataset import DatasetSettings, read_params
from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.check import check
from pipelines.recipe.lattice import lattice_of
from pipelines.recipe.plan import JudgedData, Plan, plan
from pipelines.recipe.profiles import few_seeds, smoke_run
from pipelines.recipe.profiles import smoke as smoke_profile
from pipelines.recipe.routes import RoutesOver
from pipelines.recipe.schema import Recipe
from pipelines.reports.anchors import read_anchors
from pipelines.task_families import TaskFamily
from tasks.datasets.libraries import recipes_for, recipes_of, setting_of_dataset, settings_of
from tasks.datasets.prepared import Prepared, open_prepared
from tasks.environment import STORE


@dataclass(frozen=True)
class Request:
    """A user's request, with the dataset's own defaults filled in."""

    dataset: str
    recipe: str
    variants: tuple[str, ...]
    smoke: bool
    budget: dict[str, Any]
    judged_on: str | None = None
    """Dataset on which models are judged; None: that on which they are trained."""
    transform: Callable[[Recipe], Recipe] | None = None
    """Transformation of the whole recipe: to a claim's comparison, to a lattice; None: the recipe itself."""
    reduces: bool = False
    """Whether only the stages that `transform` keeps must fit the dataset: those of a claim, on any dataset."""
    routes: RoutesOver | None = None
    """Routes over a finished model, which are the recipe; None: the one that is called `recipe`."""


def store_folder(root: Path) -> Path:
    """The folder of this checkout's artifacts."""
    return root / STORE


def resolve_request(
    root: Path, dataset: str | None, recipe: str | None, variants: tuple[str, ...], smoke: bool
) -> Request:
    """Fill in missing values from params.yaml.

    A recipe that the default dataset does not fit, for it has other labels, gets one that it was written for: the first
    whose own recipe it is, or on which it has a claim. Raises RecipeError for an unknown dataset.
    """
    settings = settings_of(root)
    read_anchors(root)  # reports an error in that file now, not when the report is written
    name = dataset or str(read_params(root).get("default_dataset", next(iter(settings))))
    if name not in settings:
        raise RecipeError(f"{root / 'params.yaml'}: no dataset is called {name!r}.{did_you_mean(name, settings)}")
    request = _request(root, settings, name, recipe, variants, smoke)
    if dataset is None and recipe is not None and not _fits(root, request):
        others = (_request(root, settings, other, recipe, variants, smoke) for other in _written_for(root, request))
        return next((other for other in others if _fits(root, other)), request)
    return request


def _request(
    root: Path,
    settings: Mapping[str, DatasetSettings],
    name: str,
    recipe: str | None,
    variants: tuple[str, ...],
    smoke: bool,
) -> Request:
    chosen = settings[name]
    own = recipe is None or recipe == chosen.recipe
    budget = dict(chosen.budget) if own else {}
    if variants and budget:
        # a budget that is asked for by name is meant, also where the dataset has one
        budget = recipes_of(root).budget_below(chosen.recipe, variants, budget)
    return Request(
        dataset=name,
        recipe=recipe or chosen.recipe,
        variants=variants or (tuple(chosen.variants) if own else ()),
        smoke=smoke,
        budget=budget,
    )


def _fits(root: Path, request: Request) -> bool:
    """Whether the recipe can be trained on the dataset."""
    try:
        load_recipe(root, request)
    except RecipeError:
        return False
    return True


def _written_for(root: Path, request: Request) -> list[str]:
    """Datasets of params.yaml that name the recipe as theirs, then those of its claims; none if it cannot be read."""
    settings = settings_of(root)
    own = [name for name, one in settings.items() if one.recipe == request.recipe]
    try:
        recipe = recipes_of(root).load(request.recipe, request.variants)
    except RecipeError:
        return own
    claimed = (name for claim in recipe.claims.values() for name in claim.datasets if name in settings)
    return [*dict.fromkeys([*own, *claimed])]


def lattice_request(
    root: Path,
    dataset: str | None,
    recipe: str | None,
    variants: Sequence[str],
    seeds: int | None,
    sizes: Sequence[int],
    smoke: bool,
) -> Request:
    """A request for all paths through the stages of a recipe. Raises RecipeError for an unknown dataset."""
    request = resolve_request(root, dataset, recipe, tuple(variants), smoke)
    return replace(request, transform=partial(lattice_of, seeds=seeds, sizes=tuple(sizes)))


def load_recipe(root: Path, request: Request) -> Recipe:
    """The requested recipe, checked. Raises RecipeError."""
    setting = setting_of_dataset(root, request.dataset)
    library, whole = recipes_for(root, request.dataset), None if request.reduces else setting
    if request.routes is not None:
        return request.routes.load(library, setting)
    recipe = library.load(request.recipe, request.variants, request.budget, whole)
    if request.smoke:
        recipe = few_seeds(recipe)  # before a claim or a lattice states its own
    if request.transform is not None:
        recipe = request.transform(recipe)
    for stage, value in recipe.stages.items() if request.reduces else ():
        if problem := check(value, partial(library.stage, recipe), setting):
            raise RecipeError(f"recipe {recipe.name} on {request.dataset}: stages.{stage}.{problem[0]}: {problem[1]}")
    return smoke_profile(recipe) if request.smoke else recipe


def check_stage(recipe: Recipe, stage: str) -> None:
    """Raise RecipeError unless the recipe has `stage`."""
    if stage not in recipe.stages:
        raise RecipeError(f"recipe {recipe.name} has no stage {stage!r}.{did_you_mean(stage, recipe.stages)}")


def sources(root: Path, prepared: Prepared) -> dict[str, DataSource]:
    """The prepared tables as data sources of a plan."""
    return {
        name: DataSource(digest=prepared.digests[name], path=path.relative_to(root).as_posix())
        for name, path in prepared.tables.items()
    }


def make_plan(root: Path, request: Request, prepared: Prepared, judged: Prepared | None = None) -> Plan:
    """The steps of the requested recipe over `prepared`; models are judged on `judged`, by default the last prepared
    state of the dataset that the request names for it."""
    family = TaskFamily.model_validate(prepared.family)
    families = {name: TaskFamily.model_validate(one) for name, one in prepared.families.items()}
    profile = smoke_run if request.smoke else (lambda recipe: recipe)
    library = recipes_for(root, request.dataset)
    return plan(
        load_recipe(root, request),
        library,
        sources(root, prepared),
        family,
        profile,
        families,
        _judged_data(root, request, judged),
        request.routes.given if request.routes is not None else None,
    )


def _judged_data(root: Path, request: Request, judged: Prepared | None) -> JudgedData | None:
    if request.judged_on is None:
        return None
    judged = judged or open_prepared(request.judged_on, root)
    return JudgedData(sources(root, judged), judged.language)
