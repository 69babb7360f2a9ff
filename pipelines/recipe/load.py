"""Load recipes: YAML → Recipe. Every error names the file and line.

A recipe file has the keys of `Recipe`, and two more that are resolved here:

    like: regime                    inherit everything that is not given here from that recipe, but not its systems
    variants: {hour: {general: …}}  overlays on stages, chosen by name when a recipe is loaded

A stage inherits the keys it omits: all of them from the stage named in `like`; the tokenizer, its limits, the
segmentation, the annotations and the backbone from the stage it starts from; and, where both read plain text, also
layout, attention, corruption, head, objective, strategy, schedule, optimizer, dropout, estimate and budget
(inheritance.py). `budget` and `optimizer` are inherited key by key (merging.py), everything else whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipelines.components import IMMENSE, UNKNOWN_KEY, did_you_mean
from pipelines.errors import RecipeError
from pipelines.recipe.check import check
from pipelines.recipe.checkpoint import backbone_of
from pipelines.recipe.claim import AT_KEY
from pipelines.recipe.claims import check_claim, path_of
from pipelines.recipe.cycles import circular_stages
from pipelines.recipe.document import VARIANTS, Document, overlay
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.inheritance import inherited_keys, like_another, with_owner
from pipelines.recipe.merging import merged
from pipelines.recipe.model_annotations import read_models
from pipelines.recipe.problems import Setting
from pipelines.recipe.recipe_file import FILE_KEYS, KeyPath, read_recipe
from pipelines.recipe.schema import Recipe, Stage
from pipelines.recipe.systems import OWN_KEYS, check_systems

MOST_STAGES = 200
"""Stages that a recipe may have: each may inherit from the one before it."""
_NAME = re.compile(r"[A-Za-z][\w.-]*")


@dataclass(frozen=True)
class RecipeOptions:
    """Variants and budget with which a dataset uses a recipe."""

    variants: tuple[str, ...] = ()
    budget: Mapping[str, Any] = field(default_factory=dict)
    """Stage → keys of its budget that replace those of the recipe."""


class Library:
    """Recipes in a folder, or in those of a project. `load` returns a checked Recipe.

    `options` maps a recipe to the variants and budget that apply whenever they are not given, also when another recipe
    starts from its stages: on one dataset, all recipes then refer to the same trained models. They are read once.
    """

    finished: frozenset[str] = frozenset()  # stages that are not checked: their models exist

    def __init__(self, folder: Path | RecipeFolders, options: Mapping[str, RecipeOptions] | None = None) -> None:
        self.folders = folder if isinstance(folder, RecipeFolders) else RecipeFolders((folder,))
        self.options = options or {}
        self._referenced: dict[str, Recipe] = {}

    def names(self) -> list[str]:
        """Sorted names of the recipes."""
        return list(self.folders.files)

    def load(
        self,
        name: str,
        variants: Sequence[str] | None = None,
        budget: Mapping[str, Any] | None = None,
        setting: Setting | None = None,
    ) -> Recipe:
        """Load the recipe called `name` (or in the file `name`), apply `variants` in order, then `budget`.

        `variants` and `budget` default to the `options` of the recipe. `budget` maps a stage to keys of its budget;
        `setting` is the dataset that the parts must fit, where it is known. Raises RecipeError, naming file, line and
        key, for anything misspelt, missing or circular, and for parts that do not fit together.
        """
        document = self._configured(name, variants, budget)
        stages = {stage: self._built(document, stage) for stage in document.values["stages"]}
        try:
            recipe = Recipe.model_validate(
                {**{key: value for key, value in document.values.items() if key != "stages"}, "stages": stages}
            )
        except ValidationError as error:
            raise self._explain(document, (), error) from None
        if circle := circular_stages(recipe):
            stage, key, message = circle
            raise document.error(("stages", stage, *key.split(".")), message)
        for stage, value in recipe.stages.items():
            resolve = partial(self._resolve, document, recipe, stage)
            if stage not in self.finished and (problem := check(value, resolve, setting or Setting())):
                key, message = problem
                raise document.error(("stages", stage, *key.split(".")), message)
        recipe = recipe.model_copy(update={"others": self._others(document, recipe)})
        for name in recipe.claims:
            if mistake := check_claim(recipe, name, document.values["claims"][name]):
                raise document.error(*mistake)
        if mistake := check_systems(recipe, self.folders.systems):
            raise document.error(*mistake)
        return recipe

    def stage(self, recipe: Recipe, reference: str) -> Stage:
        """Stage that `reference` (`stage` or `recipe/stage`) names within `recipe`. Raises RecipeError for none."""
        owner, _, stage = reference.rpartition("/")
        if owner and owner not in self._referenced:
            if owner not in self.names():
                raise RecipeError(f"there is no recipe {owner!r}.{did_you_mean(owner, self.names())}")
            self._referenced[owner] = self.load(owner)
        stages = (self._referenced[owner] if owner else recipe).stages
        if stage not in stages:
            raise RecipeError(f"recipe {owner or recipe.name} has no stage {stage!r}.{did_you_mean(stage, stages)}")
        return stages[stage]

    def budget_below(self, name: str, variants: Sequence[str], budget: Mapping[str, Any]) -> dict[str, Any]:
        """`budget` without the stages whose budget one of `variants` sets."""
        varied = self._document(name, tuple(variants)).varied
        return {stage: changes for stage, changes in budget.items() if ("stages", stage, "budget") not in varied}

    def _others(self, document: Document, recipe: Recipe) -> dict[str, Stage]:
        """Stages of other recipes that claims compare. The claims of those are not read: they may name this recipe."""
        result: dict[str, Stage] = {}
        for name, claim in recipe.claims.items():
            for reference in dict.fromkeys(side.stage for side in claim.form.sides() if "/" in side.stage):
                owner, _, stage = reference.rpartition("/")
                where = ("claims", name, *path_of(reference, document.values["claims"][name]))
                if owner not in self.names():
                    raise document.error(where, f"there is no recipe {owner!r}.{did_you_mean(owner, self.names())}")
                other = self._configured(owner)
                if stage not in other.values["stages"]:
                    known = did_you_mean(stage, other.values["stages"])
                    raise document.error(where, f"recipe {owner} has no stage {stage!r}.{known}")
                result[reference] = self._built(other, stage)
        return result

    def _configured(
        self, name: str, variants: Sequence[str] | None = None, budget: Mapping[str, Any] | None = None
    ) -> Document:
        """The document of a recipe with its variants and budget."""
        options = self.options.get(name, RecipeOptions())
        document = self._document(name, tuple(options.variants if variants is None else variants))
        for stage, changes in (options.budget if budget is None else budget).items():
            self._require_stage(document, ("budget", stage), stage)
            values = document.values["stages"][stage]
            values["budget"] = merged("budget", values.get("budget"), dict(changes))
            document.locations |= {("stages", stage, "budget", key): f"params.yaml: budget.{stage}" for key in changes}
        return document

    def _built(self, document: Document, stage: str) -> Stage:
        """A stage with what it inherits, its parts not checked against each other."""
        try:
            return Stage.model_validate(self._inherit(document, stage, ()))
        except ValidationError as error:
            raise self._explain(document, ("stages", stage), error) from None

    def _resolve(self, document: Document, recipe: Recipe, stage: str, reference: str) -> Stage:
        """Stage that `reference` names; the error for an unknown one has the location of the reference."""
        try:
            return self.stage(recipe, reference)
        except RecipeError as error:
            teachers: dict[KeyPath, str | None] = {("teacher",): recipe.stages[stage].teacher}
            for name, line in recipe.stages[stage].lines.items():
                teachers["lines", name, "teacher"] = line.teacher
            read = any(one.from_ == reference for one in recipe.stages[stage].features)
            head = ("start", "head") if recipe.stages[stage].head_start == reference else ("start",)
            other: KeyPath = ("features",) if read else head
            annotated = {tuple(key.split(".")): one.from_ for _, key, one in read_models(recipe.stages[stage])}
            named = {**teachers, **annotated}
            key_path = next((path for path, one in named.items() if one == reference), other)
            raise document.error(("stages", stage, *key_path), str(error)) from None

    def _document(self, name: str, variants: tuple[str, ...], seen: tuple[str, ...] = ()) -> Document:
        path = Path(name) if name.endswith((".yaml", ".yml")) else self.folders.files.get(name)
        if path is None or not path.exists():
            raise RecipeError(f"there is no recipe {name!r}.{did_you_mean(name, self.names())}")
        if name in seen:
            raise RecipeError(f"{path}: circular `like`: {' → '.join((*seen, name))}")
        values, locations = read_recipe(path)
        document = Document(path.stem, deepcopy(values), dict(locations))
        document.values.setdefault("name", path.stem)
        for key in values:
            if key not in FILE_KEYS:
                raise document.error((key,), f"a recipe has no key {key!r}.{did_you_mean(key, FILE_KEYS)}")
        base = document.values.pop("like", None)
        overlays: dict[str, Any] = document.values.pop("variants", None) or {}
        if not isinstance(overlays, dict):
            raise document.error(
                ("variants",), "expected a mapping: name of the variant, then stages and their changes"
            )
        if base is not None and not isinstance(base, str):
            raise document.error(("like",), f"expected the name of a recipe, got {base!r}")
        if base is not None:
            known = [variant for variant in variants if variant not in overlays]
            try:
                base_document = self._document(base, tuple(known), (*seen, name))
            except RecipeError as error:
                # an error inside the base names its own file; a missing base is an error of this file
                if base in self.names():
                    raise
                raise document.error(("like",), str(error)) from None
            for key in OWN_KEYS:
                base_document.values.pop(key, None)
            overlay(base_document, document.values.pop("stages", None) or {}, locations, ("stages",))
            document = Document(
                document.name,
                {**base_document.values, **document.values},
                {**base_document.locations, **document.locations},
                base_document.varied,
            )
            variants = tuple(variant for variant in variants if variant in overlays)
        if not isinstance(document.values.get("stages"), dict):
            raise document.error((), "a recipe needs the key 'stages', a mapping of stage names to stages")
        if len(document.values["stages"]) > MOST_STAGES:
            number = len(document.values["stages"])
            raise document.error(("stages",), f"{number:,} stages are more than a recipe may have ({MOST_STAGES})")
        for stage in document.values["stages"]:
            if not _NAME.fullmatch(stage):
                raise document.error(
                    ("stages", stage),
                    f"{stage!r} is no valid stage name: use letters, digits, '_', '-' and '.', a letter first",
                )
        for variant in variants:
            if variant not in overlays:
                raise RecipeError(f"{path}: there is no variant {variant!r}.{did_you_mean(variant, overlays)}")
            overlay(document, overlays[variant], locations, (VARIANTS, variant))
        return document

    def _inherit(self, document: Document, name: str, seen: tuple[str, ...]) -> dict[str, Any]:
        """Stage as a mapping, with inherited keys filled in."""
        key_path = ("stages", name)
        if name in seen:
            raise document.error(key_path, f"circular stages: {' → '.join((*seen, name))}")
        own = document.values["stages"][name]
        if not isinstance(own, dict):
            raise document.error(key_path, f"a stage must be a mapping of keys, got {own!r}")
        for key in ("kind", "like"):
            if own.get(key) is not None and not isinstance(own[key], str):
                what = "kind of stage" if key == "kind" else "stage"
                raise document.error((*key_path, key), f"expected the name of a {what}, got {own[key]!r}")
        result: dict[str, Any] = {}
        like = own.get("like")
        if like is not None:
            self._require_stage(document, (*key_path, "like"), like)
            result = like_another(document.values["stages"], own, self._inherit(document, like, (*seen, name)))
        start = own.get("start", result.get("start"))
        if isinstance(start, dict):
            start = start.get("untrained", start.get("backbone", start))
        parent: dict[str, Any] = {}
        if isinstance(start, str):
            parent = self._parent(document, (*key_path, "start"), start, (*seen, name))
        carried = inherited_keys({**result, **own}, parent)
        result = {**{key: parent[key] for key in carried if key in parent}, **result}
        for key, value in own.items():
            result[key] = merged(key, result.get(key), value)
        if isinstance(start, dict) and "checkpoint" in start and "backbone" not in result:
            try:
                result["backbone"] = backbone_of(str(start["checkpoint"])).model_dump()
            except RecipeError as error:
                raise document.error((*key_path, "start", "checkpoint"), str(error)) from None
        return result

    def _parent(self, document: Document, key_path: KeyPath, start: str, seen: tuple[str, ...]) -> dict[str, Any]:
        owner, _, stage = start.rpartition("/")
        if owner:
            if owner not in self.names():
                raise document.error(key_path, f"there is no recipe {owner!r}.{did_you_mean(owner, self.names())}")
            other = self._document(owner, ())
            self._require_stage(other, key_path, stage)
            return with_owner(owner, self._inherit(other, stage, seen))
        self._require_stage(document, key_path, start)
        return self._inherit(document, start, seen)

    def _require_stage(self, document: Document, key_path: KeyPath, stage: str) -> None:
        stages = document.values["stages"]
        if stage not in stages:
            raise document.error(key_path, f"there is no stage {stage!r}.{did_you_mean(stage, stages)}")

    def _explain(self, document: Document, key_path: KeyPath, error: ValidationError) -> RecipeError:
        first = error.errors()[0]
        # a list of one entry may be written without the list, and its place is then no part of the location
        without = tuple(str(part) for part in first["loc"] if not isinstance(part, int))
        located = [document.written(key_path, one) for one in (tuple(map(str, first["loc"])), without)]
        written = max(located, key=len)
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] in (UNKNOWN_KEY, IMMENSE, AT_KEY):
            written = (*written, first["ctx"]["key"]) if first["ctx"]["key"] else written
        elif first["type"] == "missing":
            message = f"the key {first['loc'][-1]!r} is missing"
        elif first["type"] in ("enum", "literal_error"):
            message = f"{first['input']!r} is not one of {first['ctx'].get('expected', '')}"
        return document.error((*key_path, *written), message)
