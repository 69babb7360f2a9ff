"""YAML → Recipe. Whatever is wrong is told with its file and line.

A recipe file has the keys of `Recipe`, and two more that are resolved here:

    base: bert                      take everything not given here from that recipe
    variants: {hour: {general: …}}  overlays on stages, chosen by name when a recipe is loaded

A stage inherits what it omits: everything from the stage named in `like`; the tokenizer, its limits, the segmentation and the
backbone of the stage it starts from; and, where both read plain text, also layout, corruption, head, objective, strategy,
schedule, optimizer, dropout and budget.
`budget` and `optimizer` are inherited key by key, everything else whole.
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

from pipelines.components import UNKNOWN_KEY, did_you_mean
from pipelines.errors import RecipeError
from pipelines.recipe.check import Setting, check
from pipelines.recipe.checkpoint import backbone_of
from pipelines.recipe.kinds import Kind
from pipelines.recipe.recipe_file import FILE_KEYS, KeyPath, read_recipe
from pipelines.recipe.schema import Recipe, Stage

MERGED = ("budget", "optimizer")
"""Stage keys that are inherited key by key."""
CARRIED = ("tokenizer", "limits", "segmentation", "backbone")
"""Stage keys that every stage inherits from the one it starts from."""
CONTINUED = (
    *CARRIED,
    "layout",
    "corruption",
    "head",
    "objective",
    "strategy",
    "schedule",
    "optimizer",
    "dropout",
    "budget",
)
"""Stage keys inherited when plain-text training continues."""


_NAME = re.compile(r"[A-Za-z][\w.-]*")


@dataclass
class Document:
    """A recipe file after `base` and variants, with the place where each key was written."""

    name: str
    values: dict[str, Any]
    places: dict[KeyPath, str] = field(default_factory=dict)

    def error(self, path: KeyPath, message: str) -> RecipeError:
        """The message, preceded by the file and line of the longest known prefix of `path`."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                key = ".".join(path)
                return RecipeError(f"{self.places[path[:end]]}: {key + ': ' if key else ''}{message}")
        return RecipeError(f"recipe {self.name}: {message}")


@dataclass(frozen=True)
class RecipeOptions:
    """What a dataset asks of a recipe."""

    variants: tuple[str, ...] = ()
    budget: Mapping[str, Any] = field(default_factory=dict)


class Library:
    """The recipes in a folder. `load` gives a checked Recipe.

    `asked` says by recipe with which variants and budget it is meant where another recipe starts from its stages, so that
    what is looked at on a dataset are the models that were trained on it.
    """

    def __init__(self, folder: Path, asked: Mapping[str, RecipeOptions] | None = None) -> None:
        self.folder, self.asked = folder, asked or {}

    def names(self) -> list[str]:
        """The recipes that can be loaded by name."""
        return sorted(path.stem for path in self.folder.glob("*.yaml"))

    def load(
        self,
        name: str,
        variants: Sequence[str] | None = None,
        budget: Mapping[str, Any] | None = None,
        setting: Setting | None = None,
    ) -> Recipe:
        """The recipe called `name` (or in the file `name`), with `variants` laid over it in order, then `budget`.

        Those that are not given are those asked of it.

        `budget` maps a stage to keys of its budget; `setting` is the dataset that the parts must fit, where it is known.
        Raises RecipeError, naming file, line and key, for anything that is misspelt, missing, circular, or that cannot work
        together.
        """
        asked = self.asked.get(name, RecipeOptions())
        document = self._document(name, tuple(asked.variants if variants is None else variants))
        for stage, changes in (asked.budget if budget is None else budget).items():
            self._require_stage(document, ("budget", stage), stage)
            merged = {**(document.values["stages"][stage].get("budget") or {}), **changes}
            if "tokens" in changes:
                merged.pop("epochs", None)
            if "epochs" in changes:
                merged.pop("tokens", None)
            document.values["stages"][stage]["budget"] = merged
        stages = {}
        for stage in document.values["stages"]:
            raw = self._inherit(document, stage, ())
            try:
                stages[stage] = Stage.model_validate(raw)
            except ValidationError as error:
                raise self._explain(document, ("stages", stage), error) from None
        try:
            recipe = Recipe.model_validate(
                {**{key: value for key, value in document.values.items() if key != "stages"}, "stages": stages}
            )
        except ValidationError as error:
            raise self._explain(document, (), error) from None
        for stage, value in recipe.stages.items():
            problem = check(value, partial(self._resolve, document, recipe, stage), setting or Setting())
            if problem:
                key, message = problem
                raise document.error(("stages", stage, key), message)
        for name, claim in recipe.claims.items():
            for side in ("system", "baseline"):
                self._require_stage(document, ("claims", name, side), getattr(claim, side))
        return recipe

    def stage(self, recipe: Recipe, reference: str) -> Stage:
        """The stage that `reference` (`stage` or `recipe/stage`) names as seen from `recipe`. Raises RecipeError."""
        owner, _, stage = reference.rpartition("/")
        stages = (self.load(owner) if owner else recipe).stages
        if stage not in stages:
            raise RecipeError(f"recipe {owner or recipe.name} has no stage {stage!r}.{did_you_mean(stage, stages)}")
        return stages[stage]

    def _resolve(self, document: Document, recipe: Recipe, stage: str, reference: str) -> Stage:
        """What `reference` names; where that is nothing, the error says where it was written."""
        try:
            return self.stage(recipe, reference)
        except RecipeError as error:
            key = "teacher" if recipe.stages[stage].teacher == reference else "start"
            raise document.error(("stages", stage, key), str(error)) from None

    def _document(self, name: str, variants: tuple[str, ...], seen: tuple[str, ...] = ()) -> Document:
        path = Path(name) if name.endswith((".yaml", ".yml")) else self.folder / f"{name}.yaml"
        if not path.exists():
            raise RecipeError(f"no recipe is called {name!r}.{did_you_mean(name, self.names())}")
        if name in seen:
            raise RecipeError(f"{path}: `base` goes in a circle: {' → '.join((*seen, name))}")
        values, places = read_recipe(path)
        document = Document(path.stem, deepcopy(values), dict(places))
        document.values.setdefault("name", path.stem)
        for key in values:
            if key not in FILE_KEYS:
                raise document.error((key,), f"a recipe has no key {key!r}.{did_you_mean(key, FILE_KEYS)}")
        base = document.values.pop("base", None)
        overlays: dict[str, Any] = document.values.pop("variants", None) or {}
        if base is not None:
            known = [variant for variant in variants if variant not in overlays]
            try:
                below = self._document(base, tuple(known), (*seen, name))
            except RecipeError as error:
                # what is wrong inside the base names its own file; that there is no such base is told by this one
                if base in self.names():
                    raise
                raise document.error(("base",), str(error)) from None
            _overlay(below, document.values.pop("stages", None) or {}, places, ("stages",))
            document = Document(document.name, {**below.values, **document.values}, {**below.places, **document.places})
            variants = tuple(variant for variant in variants if variant in overlays)
        if not isinstance(document.values.get("stages"), dict):
            raise document.error((), "a recipe needs the key 'stages', a mapping of stage names to stages")
        for stage in document.values["stages"]:
            if not _NAME.fullmatch(stage):
                raise document.error(
                    ("stages", stage), f"{stage!r} names a stage: use letters, digits, '_', '-' and '.', a letter first"
                )
        for variant in variants:
            if variant not in overlays:
                raise RecipeError(f"{path}: no variant is called {variant!r}.{did_you_mean(variant, overlays)}")
            _overlay(document, overlays[variant], places, ("variants", variant))
        return document

    def _inherit(self, document: Document, name: str, seen: tuple[str, ...]) -> dict[str, Any]:
        """The stage as a mapping, with everything it omits filled in."""
        place = ("stages", name)
        if name in seen:
            raise document.error(place, f"stages depend on each other in a circle: {' → '.join((*seen, name))}")
        own = document.values["stages"][name]
        if not isinstance(own, dict):
            raise document.error(place, f"a stage is a mapping of keys, got {own!r}")
        result: dict[str, Any] = {}
        like = own.get("like")
        if like is not None:
            self._require_stage(document, (*place, "like"), like)
            result = self._inherit(document, like, (*seen, name))
        start = own.get("start", result.get("start"))
        if isinstance(start, dict) and "untrained" in start:
            start = start["untrained"]
        parent: dict[str, Any] = {}
        if isinstance(start, str):
            parent = self._parent(document, (*place, "start"), start, (*seen, name))
        kinds = (own.get("kind", result.get("kind")), parent.get("kind"))
        both_plain = all(kind in set(Kind) and Kind(kind).reads_plain_text for kind in kinds)
        result = {**{key: parent[key] for key in (CONTINUED if both_plain else CARRIED) if key in parent}, **result}
        for key, value in own.items():
            if key in MERGED and isinstance(value, dict):
                inherited = dict(result.get(key) or {})
                if "tokens" in value or "epochs" in value:
                    inherited.pop("tokens", None)
                    inherited.pop("epochs", None)
                value = {**inherited, **value}
            result[key] = value
        if isinstance(start, dict) and "checkpoint" in start and "backbone" not in result:
            try:
                result["backbone"] = backbone_of(str(start["checkpoint"])).model_dump()
            except RecipeError as error:
                raise document.error((*place, "start", "checkpoint"), str(error)) from None
        return result

    def _parent(self, document: Document, place: KeyPath, start: str, seen: tuple[str, ...]) -> dict[str, Any]:
        owner, _, stage = start.rpartition("/")
        if owner:
            other = self._document(owner, ())
            self._require_stage(other, place, stage)
            return self._inherit(other, stage, seen)
        self._require_stage(document, place, start)
        return self._inherit(document, start, seen)

    def _require_stage(self, document: Document, place: KeyPath, stage: str) -> None:
        stages = document.values["stages"]
        if stage not in stages:
            raise document.error(place, f"no stage is called {stage!r}.{did_you_mean(stage, stages)}")

    def _explain(self, document: Document, place: KeyPath, error: ValidationError) -> RecipeError:
        first = error.errors()[0]
        # union branches put type names into the location: keep the parts that were written in the file
        written = tuple(str(part) for part in first["loc"])
        while written and not any(path[: len(place) + len(written)] == (*place, *written) for path in document.places):
            written = written[:-1]
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == UNKNOWN_KEY:
            written = (*written, first["ctx"]["key"])
        elif first["type"] == "missing":
            message = f"the key {first['loc'][-1]!r} is missing"
        elif first["type"] in ("enum", "literal_error"):
            message = f"{first['input']!r} is not one of {first['ctx'].get('expected', '')}"
        return document.error((*place, *written), message)


def _overlay(document: Document, stages: Any, places: dict[KeyPath, str], prefix: KeyPath) -> None:
    """Lay `stages` (a mapping of partial stages) over the document's, and remember where each key was written."""
    if not isinstance(stages, dict):
        raise document.error(prefix, "expected a mapping of stage names to changes")
    for name, changes in stages.items():
        target = document.values["stages"].get(name)
        if changes is None:
            document.values["stages"].pop(name, None)
            continue
        if not isinstance(target, dict) or "kind" in changes:
            document.values["stages"][name] = deepcopy(changes)
        else:
            for key, value in changes.items():
                if key in MERGED and isinstance(value, dict) and isinstance(target.get(key), dict):
                    kept = dict(target[key])
                    if "tokens" in value or "epochs" in value:
                        kept.pop("tokens", None)
                        kept.pop("epochs", None)
                    value = {**kept, **value}
                target[key] = deepcopy(value)
        for path, where in places.items():
            if path[: len(prefix) + 1] == (*prefix, name):
                document.places[("stages", *path[len(prefix) :])] = where
