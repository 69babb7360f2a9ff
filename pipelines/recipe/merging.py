"""Keys of a stage that are inherited key by key: `budget`, `optimizer`, and a `backbone` without a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.parts.optimizers import Optimizer

AMOUNTS = ("tokens", "epochs")
"""Keys of a budget of which one replaces the other."""


def merged(key: str, inherited: Any, own: Any) -> Any:
    """Value of a stage's `key` that says `own` and inherits the value `inherited`, both as written in a recipe.

    An optimizer of another name inherits only what every optimizer has (`lr`, `weight_decay`, `clip`, `precision`).
    A backbone without a name is the inherited one with other values, such as `embeddings` that a stage adds.
    Values that are no mapping are returned as they are: validation refuses them.
    """
    if key == "backbone":
        without_name = isinstance(own, Mapping) and isinstance(inherited, Mapping) and "name" not in own
        return {**inherited, **own} if without_name else own
    if key == "optimizer":
        own, inherited = _named(own), _named(inherited)
    elif key != "budget":
        return own
    if not isinstance(own, Mapping) or not isinstance(inherited, Mapping):
        return own
    kept = dict(inherited)
    if any(amount in own for amount in AMOUNTS):
        kept = {one: value for one, value in kept.items() if one not in AMOUNTS}
    if "name" in own and own["name"] != kept.get("name", Optimizer.default_name):
        kept = {one: value for one, value in kept.items() if one in Optimizer.model_fields}
    return {**kept, **own}


def _named(value: Any) -> Any:
    """An optimizer given as its name alone, as a mapping."""
    return {"name": value} if isinstance(value, str) else value
