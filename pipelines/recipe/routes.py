"""Routes: published ways to make a finished model smaller, each a file of stages over that model.

    recipes/routes/half.yaml        stages that start from `teacher`, or from a stage of another route

`RoutesOver` makes one recipe of a finished model and some routes: the model's own lineage as finished stages, the
stages of the routes, and a report that judges what each route leaves. It is planned and computed as any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.components import did_you_mean
from pipelines.errors import RecipeError
from pipelines.recipe.document import Document
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.load import Library
from pipelines.recipe.plan import Step
from pipelines.recipe.problems import Setting
from pipelines.recipe.recipe_file import KeyPath, read_recipe
from pipelines.recipe.schema import Recipe
from pipelines.recipe.starts import HEAD_START

ROUTES = "routes"
"""Folder of routes, inside a folder of recipes."""
TEACHER = "teacher"
"""Name of the finished model among the stages."""
REPORT = "report"
"""Name of the evaluate stage that judges the routes."""
COMPRESS = "compress"
"""Name of the recipe."""
KEYS = ("name", "description", "paper", "saves", "stages")
SAVINGS = ("bytes", "time")
"""What a route is for: `bytes` unless it says `time`, which models may be measured for that are no smaller."""
REFERENCES = ("start", "teacher", "like", HEAD_START)
"""Keys of a stage, as written, that name another."""


@dataclass(frozen=True)
class Route:
    """A file of routes: stages as written, the one of the route's own name last."""

    name: str
    description: str
    paper: str
    stages: Mapping[str, Any]
    saves: str = SAVINGS[0]
    locations: Mapping[KeyPath, str] = field(default_factory=dict, compare=False)
    """Key path → `file:line`."""

    @classmethod
    def read(cls, path: Path) -> Route:
        """The route in the file `path`. Raises RecipeError, with the line, for anything that is no route."""
        values, locations = read_recipe(path)
        for key in values:
            if key not in KEYS:
                raise RecipeError(f"{locations[key,]}: a route has no key {key!r}.{did_you_mean(key, KEYS)}")
        stages = values.get("stages")
        if not isinstance(stages, dict) or path.stem not in stages:
            raise RecipeError(
                f"{locations.get(('stages',), locations[()])}: a route has a stage of its own name, {path.stem}, which "
                "leaves the smaller model"
            )
        if taken := next((one for one in stages if one in (TEACHER, REPORT)), None):
            raise RecipeError(
                f"{locations['stages', taken]}: {taken!r} is the name of a stage that every route has beside its own; "
                "choose another"
            )
        if (saves := values.get("saves", SAVINGS[0])) not in SAVINGS:
            raise RecipeError(f"{locations['saves',]}: saves: {saves!r} is unknown; write {' or '.join(SAVINGS)}")
        description, paper = str(values.get("description", "")), str(values.get("paper", ""))
        return cls(path.stem, description, paper, stages, str(saves), locations)

    @property
    def references(self) -> Iterator[str]:
        """The stages of no other recipe that its stages name."""
        for stage in self.stages.values():
            for key in REFERENCES if isinstance(stage, dict) else ():
                value = stage.get(key)
                named = value.values() if isinstance(value, dict) else (value,)
                yield from (one for one in named if isinstance(one, str) and "/" not in one)


def read_routes(folders: RecipeFolders) -> dict[str, Route]:
    """Name → route, in alphabetical order; of two of one name, that of the first folder. Raises RecipeError for a stage
    that two routes have."""
    paths: dict[str, Path] = {}
    for folder in folders.folders:
        for path in sorted((folder / ROUTES).glob("*.yaml")):
            paths.setdefault(path.stem, path)
    routes = {name: Route.read(path) for name, path in sorted(paths.items())}
    owners: dict[str, str] = {}
    for route in routes.values():
        for stage in route.stages:
            if stage in owners:
                raise RecipeError(
                    f"{route.locations['stages', stage]}: route {owners[stage]!r} has a stage {stage!r} too; rename one"
                )
            owners[stage] = route.name
    return routes


def with_earlier(route: Route, routes: Mapping[str, Route]) -> list[Route]:
    """`route`, and before it the routes whose stages it continues."""
    owners = {stage: one for one in routes.values() for stage in one.stages}
    chain = [route]
    for one in chain:
        for reference in one.references:
            if reference in owners and owners[reference] not in chain:
                chain.append(owners[reference])
    return chain[::-1]


@dataclass(frozen=True)
class FinishedModel:
    """A model in the store, and what it was made of, as stages that are not computed again."""

    fingerprint: str
    stages: Mapping[str, Mapping[str, Any]]
    """Name → stage as a recipe would write it; the model itself is `TEACHER`, its ancestors come before it."""
    steps: Mapping[str, Step]
    """The same names → the finished step; empty for a model from elsewhere, whose one stage is still to be computed."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """Keys of a stage that trains, for routes that say `like: teacher`, where the model was not trained here."""

    @property
    def corpus(self) -> list[str]:
        """The labelled corpus that it learned from."""
        return list(self.stages[TEACHER]["corpus"])


@dataclass(frozen=True)
class RoutesOver:
    """Routes over a finished model, as one recipe."""

    model: FinishedModel
    routes: tuple[Route, ...]
    suite: tuple[Mapping[str, Any], ...]
    """Evaluations of the report, as a recipe writes them."""

    @property
    def given(self) -> Mapping[str, Step]:
        """Name of a stage of the recipe → the finished step that it is."""
        return self.model.steps

    def load(self, library: Library, setting: Setting) -> Recipe:
        """The recipe, checked on a dataset; `library` has the recipes that its stages may name.

        Raises RecipeError where a route does not fit the model or the dataset."""
        return _Assembled(library, self).load(COMPRESS, (), {}, setting)


class _Assembled(Library):
    """A library with one more recipe, which is in no file."""

    def __init__(self, library: Library, routes: RoutesOver) -> None:
        super().__init__(library.folders, library.options)
        self.routes, self.finished = routes, frozenset(routes.given)

    def _document(self, name: str, variants: tuple[str, ...], seen: tuple[str, ...] = ()) -> Document:
        if name != COMPRESS:
            return super()._document(name, variants, seen)
        routes, model = self.routes.routes, self.routes.model
        stages: dict[str, Any] = {stage: deepcopy(dict(values)) for stage, values in model.stages.items()}
        locations: dict[KeyPath, str] = {}
        for route in routes:
            stages |= {name: _trained(stage, model.training) for name, stage in deepcopy(dict(route.stages)).items()}
            locations |= {path: where for path, where in route.locations.items() if path[:1] == ("stages",) != path}
        stages[REPORT] = {
            "kind": "evaluate",
            "start": [TEACHER, *(route.name for route in routes)],
            "corpus": model.corpus,
            "suite": [dict(one) for one in self.routes.suite],
        }
        values = {"name": COMPRESS, "description": "routes to a smaller model", "stages": stages}
        return Document(COMPRESS, values, locations)


def _trained(stage: Any, training: Mapping[str, Any]) -> Any:
    """A stage as written, with the keys of `training` that it does not have itself, if it is like the teacher."""
    if not training or not isinstance(stage, dict) or stage.get("like") != TEACHER:
        return stage
    merged = {**deepcopy(dict(training)), **stage}
    for key, value in training.items():
        if isinstance(value, dict) and isinstance(stage.get(key), dict) and "tokens" not in stage[key]:
            merged[key] = {**value, **stage[key]}  # but a budget in tokens, mostly of none, has no epochs
    return merged


def fitting(
    model: FinishedModel,
    routes: Mapping[str, Route],
    library: Library,
    setting: Setting,
    suite: Sequence[Mapping[str, Any]],
) -> tuple[list[Route], dict[str, str]]:
    """The routes that fit a model and a dataset, each after those that it continues, and why the others do not."""
    fits: list[Route] = []
    unfit: dict[str, str] = {}
    for route in routes.values():
        chain = with_earlier(route, routes)
        try:
            RoutesOver(model, tuple(chain), tuple(suite)).load(library, setting)
        except RecipeError as error:
            unfit[route.name] = str(error)
        else:
            fits += [one for one in chain if one not in fits]
    return fits, unfit
