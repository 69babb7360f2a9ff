"""Forms of Prefect's UI: the schema of a flow's parameters, with the checkout's own names as choices.

The UI draws a field of several types as a row of buttons, one of them None, and a field with an `enum` as a list to
choose from. So each field gets one type (left empty, it is left out), and fields that hold names get the names. What
depends on another choice (a variant on the recipe) is a condition, which the UI ignores and the server enforces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias

from tasks.datasets.choices import Choices

JsonSchema: TypeAlias = dict[str, Any]
NULL = {"type": "null"}


def form(schema: Mapping[str, Any], offered: Choices) -> JsonSchema:
    """The schema that pydantic made of a flow's parameters, as a form with choices. Other keys are unchanged."""
    result = {key: deepcopy(value) for key, value in schema.items() if key not in ("definitions", "$defs")}
    for value in result.get("properties", {}).values():
        if isinstance(default := value.get("default"), dict):
            value["default"] = {key: entry for key, entry in default.items() if entry is not None}
    definitions = deepcopy(schema.get("definitions", {}))
    for definition in definitions.values():
        fields = definition.get("properties", {})
        for name, field in fields.items():
            fields[name] = _of_one_type(field)
        _add_choices(fields, offered)
        if conditions := _conditions(fields, offered):
            definition["allOf"] = conditions
    return {**result, "definitions": definitions}


def _of_one_type(field: JsonSchema) -> JsonSchema:
    """An optional field as one that may be left out: neither null nor a default of null."""
    branches = [branch for branch in field.get("anyOf", ()) if branch != NULL]
    if len(branches) != 1 or len(branches) == len(field["anyOf"]):
        return field
    rest = {key: value for key, value in field.items() if key != "anyOf" and (key, value) != ("default", None)}
    return {**branches[0], **rest}


def _add_choices(fields: Mapping[str, JsonSchema], offered: Choices) -> None:
    outlines = offered.outlines
    names = {
        "dataset": list(offered.datasets),
        "recipe": list(offered.recipes),
        "stage": _distinct(stage for outline in outlines.values() for stage in outline.stages),
        "claim": [f"{recipe}/{claim}" for recipe, outline in outlines.items() for claim in outline.claims],
        "variants": _distinct(variant for outline in outlines.values() for variant in outline.variants),
        "data": [*offered.datasets, *(f"{role}={name}" for role in offered.roles for name in offered.datasets)],
    }
    for name, known in names.items():
        field = fields.get(name)
        if field is None:
            continue
        target = field["items"] if field.get("type") == "array" else field
        # an empty list of choices would be no valid schema
        if known:
            target["enum"] = known
    if "dataset" in fields:
        fields["dataset"]["default"] = next(iter(offered.datasets))


def _conditions(fields: Mapping[str, JsonSchema], offered: Choices) -> list[JsonSchema]:
    """What a recipe does not have is refused with it: its variants, and its stages."""
    conditions = []
    for recipe, outline in offered.outlines.items():
        allowed: JsonSchema = {}
        if "variants" in fields:
            allowed["variants"] = {"items": {"enum": list(outline.variants)}} if outline.variants else {"maxItems": 0}
        if "stage" in fields:
            allowed["stage"] = {"enum": list(outline.stages)}
        if not allowed:
            continue
        if "claim" in fields:
            chosen: list[JsonSchema] = [_chosen("claim", {"pattern": f"^{recipe}/"})]
        elif "recipe" in fields:
            unnamed = {"not": {"required": ["recipe"]}}
            own = [dataset for dataset, used in offered.datasets.items() if used == recipe]
            chosen = [_chosen("recipe", {"const": recipe})]
            chosen += [{**unnamed, **_chosen("dataset", {"enum": own})}] if own else []
            if own and own[0] == next(iter(offered.datasets)):
                chosen.append({"not": {"anyOf": [{"required": ["recipe"]}, {"required": ["dataset"]}]}})
        else:
            continue
        conditions.append({"if": {"anyOf": chosen}, "then": {"properties": allowed}})
    return conditions


def _chosen(field: str, value: JsonSchema) -> JsonSchema:
    return {"properties": {field: value}, "required": [field]}


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
