"""The steps of a recipe as jobs, without a flow around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import COMPILED, SCRATCH
from pipelines.recipe.features import feature_role
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.lines import teacher_role
from pipelines.recipe.load import Library
from pipelines.recipe.model_annotations import read_models
from pipelines.recipe.plan import Plan, Step, plan
from pipelines.recipe.problems import Setting
from pipelines.recipe.profiles import smoke
from pipelines.recipe.schema import Recipe
from tests.shared_folders import share_compiled

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "recipes"


class ShippedLibrary(Library):
    """The shipped recipes, whose files no test changes. As it stands, each is loaded once in a process: all of them
    together take seconds, and plans of others load them again and again."""

    def __init__(self) -> None:
        super().__init__(RECIPES)
        self._loaded: dict[str, Recipe] = {}

    def load(
        self,
        name: str,
        variants: Sequence[str] | None = None,
        budget: Mapping[str, Any] | None = None,
        setting: Setting | None = None,
    ) -> Recipe:
        if variants or budget or setting is not None:
            return super().load(name, variants, budget, setting)
        if name not in self._loaded:
            self._loaded[name] = super().load(name)
        return self._loaded[name]


SHIPPED = ShippedLibrary()


@cache
def shipped(name: str, *variants: str) -> Recipe:
    """A shipped recipe, loaded once."""
    return SHIPPED.load(name, variants)


def library_of(folder: Path, **files: str) -> Library:
    """A library of recipes written into `folder`, by name."""
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return Library(folder)


def without_claims(name: str) -> str:
    """The text of a shipped recipe that ends with its claims and variants, without both."""
    return (RECIPES / f"{name}.yaml").read_text(encoding="utf-8").partition("\nclaims:\n")[0] + "\n"


def plan_of(library: Library, name: str, sources: Mapping[str, DataSource], *variants: str, tiny: bool = False) -> Plan:
    """The plan of a recipe, on its smoke profile where `tiny`."""
    recipe = library.load(name, variants)
    return plan(smoke(recipe) if tiny else recipe, library, sources)


def job_of(
    step: Step, folders: Mapping[str, Path], tables: Mapping[str, Path], out: Path, runtime: Runtime | None = None
) -> Job:
    """The job of `step`, whose parents were made in `folders`, by fingerprint."""
    share_compiled(out / SCRATCH / COMPILED)
    return Job(
        fingerprint=step.fingerprint,
        recipe=step.recipe,
        stage_name=step.label,
        stage=step.stage,
        seed=step.seed,
        language="en",
        family=step.family,
        families=dict(step.families),
        start=step.checkpoint or (folders[step.parents["start"]] if "start" in step.parents else None),
        head_start=folders[step.parents["head_start"]] if "head_start" in step.parents else None,
        teachers={
            line: folders[step.parents[role]]
            for line in ("", *step.stage.lines)
            if (role := teacher_role(line)) in step.parents
        },
        features=tuple(folders[step.parents[feature_role(number)]] for number in range(len(step.stage.features))),
        annotation_models={
            role: folders[step.parents[role]] for role, _, _ in read_models(step.stage) if role in step.parents
        },
        tables={name: tables[name] for name in step.data},
        out=out,
        runtime=runtime or Runtime(),
    )
