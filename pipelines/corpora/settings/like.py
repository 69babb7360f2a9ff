"""A dataset that says only how it differs from another: `like: docstrings` takes every key that it does not say itself.

A key is taken or said whole: `task: {...}` replaces the other's task, it does not change a part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.components import did_you_mean

LIKE = "like"


class NoSuchExample(ValueError):
    """`like` names what cannot be taken from; the message says why."""


def keys_of(name: str, blocks: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Every key of the dataset `name` → the dataset that says it, and its value. NoSuchExample when `like` is wrong."""
    block = blocks[name]
    own = {str(key): (name, value) for key, value in block.items()}
    if LIKE not in block:
        return own
    other = block[LIKE]
    if other not in blocks or other == name:
        raise NoSuchExample(f"no other dataset is called {other!r}.{did_you_mean(str(other), set(blocks) - {name})}")
    example = blocks[other]
    if not isinstance(example, Mapping):
        raise NoSuchExample(f"{other!r} is no dataset")
    if LIKE in example:
        raise NoSuchExample(f"{other!r} is itself like {example[LIKE]!r}; name a dataset that says everything")
    return {str(key): (other, value) for key, value in example.items()} | own
