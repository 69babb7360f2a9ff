"""Datasets that inherit from another: `like: docstrings` takes every key that the dataset does not set itself.

Keys are inherited whole: `task: {...}` replaces the other dataset's task instead of merging with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.components import did_you_mean

LIKE = "like"


class InvalidLikeError(ValueError):
    """`like` names a dataset that cannot be inherited from; the message says why."""


def keys_of(name: str, blocks: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Key of the dataset `name` → the dataset that sets it, and its value. InvalidLikeError for an invalid `like`."""
    block = blocks[name]
    own = {str(key): (name, value) for key, value in block.items()}
    if LIKE not in block:
        return own
    other = block[LIKE]
    if not isinstance(other, str):
        raise InvalidLikeError(f"expected the name of a dataset, got {other!r}")
    if other not in blocks or other == name:
        raise InvalidLikeError(f"no other dataset is called {other!r}.{did_you_mean(str(other), set(blocks) - {name})}")
    base = blocks[other]
    if not isinstance(base, Mapping):
        raise InvalidLikeError(f"{other!r} is not a mapping of dataset keys")
    if LIKE in base:
        raise InvalidLikeError(f"{other!r} itself has 'like: {base[LIKE]}'; name a dataset without 'like'")
    return {str(key): (other, value) for key, value in base.items()} | own
