"""Whether a record of a claim or a lattice is as old as the code that it measured: its definitions then, against those
of now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pipelines.errors import CursusError
from pipelines.recipe.definitions import definitions
from tasks.datasets.claim_requests import ClaimRequest
from tasks.datasets.libraries import recipes_for
from tasks.datasets.planning import lattice_request, load_recipe
from tasks.records.measured_claim import MeasuredClaim

Standing: TypeAlias = Literal["current", "stale", "gone", "unknown"]
"""Measured of the settings and the code of now; of others; of a claim, a recipe or a dataset that is no more; or before
a record said of which."""


def measured_definitions(root: Path, measured: MeasuredClaim) -> dict[str, Any]:
    """The definitions of every stage of a measurement, one mapping for each of its parts, for its record."""
    parts = measured.parts.items()
    datasets = [prepared for _, one in parts for prepared in (one.prepared, one.judged)]
    families = sorted({family for one in datasets for family in (one.family, *one.families.values())})
    return {
        "families": families,
        "definitions": [definitions(one.plan.recipe, recipes_for(root, part.trained), families) for part, one in parts],
    }


def standing(root: Path, record: Mapping[str, Any]) -> Standing:
    """Whether a record is current in the project in `root`."""
    if "definitions" not in record:
        return "unknown"
    try:
        return "current" if definitions_now(root, record) == record["definitions"] else "stale"
    except CursusError:
        return "gone"


def differing_stages(root: Path, record: Mapping[str, Any]) -> list[str]:
    """The stages of a stale record whose settings or code have changed since."""
    now = definitions_now(root, record)
    then = record["definitions"]
    if len(now) != len(then):
        return ["the parts of the claim or its grid"]
    pairs = zip(now, then, strict=True)
    return sorted(
        {name for one, other in pairs for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    )


def definitions_now(root: Path, record: Mapping[str, Any]) -> list[dict[str, str]]:
    """The definitions with which the claim of `record` would be measured again.

    Raises RecipeError for a claim or a dataset that is no more.
    """
    name = f"{record['recipe']}/{record['claim']}"
    numbers = {"seeds": record["seeds"], "draws": record["pretraining_draws"]}
    requested = ClaimRequest.resolve(root, name, data_words(record), record["variants"], **numbers)
    grid = {key: list(values) for key, values in requested.claim.tune.items()}
    for part, tuning in zip(requested.parts, record["tuning"], strict=False):
        if tuning["grid"] != grid:
            return []
        requested = requested.chosen(part, tuning["chosen"])
    if grid and not record["tuning"]:
        return []
    return [
        definitions(
            load_recipe(root, requested.of_part(root, part)), recipes_for(root, part.trained), record["families"]
        )
        for part in requested.parts
    ]


def lattice_standing(root: Path, record: Mapping[str, Any]) -> Standing:
    """Whether the record of a lattice is current in the project in `root`."""
    if "definitions" not in record:
        return "unknown"
    try:
        return "current" if lattice_definitions(root, record) == record["definitions"] else "stale"
    except CursusError:
        return "gone"


def lattice_definitions(root: Path, record: Mapping[str, Any]) -> dict[str, str]:
    """The definitions with which the lattice of `record` would be measured again.

    Raises RecipeError for a recipe or a dataset that is no more.
    """
    measured, dataset = record["measured"], record["data"]["dataset"]
    seeds = min(len(path["seeds"]) for path in measured["paths"])
    sizes = [one["labelled"] for one in measured["sizes"] if one["labelled"] is not None]
    request = lattice_request(root, dataset, record["recipe"], record["variants"], seeds, sizes, smoke=False)
    return definitions(load_recipe(root, request), recipes_for(root, dataset), record["families"])


def data_words(record: Mapping[str, Any]) -> Sequence[str]:
    """The datasets of a record, as `cursus claim --data` reads them."""
    on = record["on"]
    return [on] if isinstance(on, str) else [f"{role}={dataset}" for role, dataset in on.items()]
