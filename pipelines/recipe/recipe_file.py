"""Read a recipe file: YAML as plain Python values, with the line of every key."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from pipelines.components.plain_yaml import LARGEST, read_yaml
from pipelines.errors import RecipeError
from pipelines.recipe.quick_yaml import read_quickly

FILE_KEYS = (
    "name",
    "description",
    "paper",
    "systems",
    "system_stages",
    "settings",
    "like",
    "variants",
    "stages",
    "claims",
)
"""Top-level keys of a recipe file."""
KeyPath: TypeAlias = tuple[str, ...]
"""Keys that lead to a value, outermost first; `()` is the document."""


@lru_cache(maxsize=256)
def _read_cached(path: Path, modified: int) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    if (quick := _read_quickly(path)) is not None:
        return quick
    loaded = read_yaml(path, "a recipe")
    if not isinstance(loaded, CommentedMap):
        raise RecipeError(f"{path}:1: a recipe is a mapping with the keys {', '.join(FILE_KEYS)}")
    locations: dict[KeyPath, str] = {(): f"{path}:1"}
    return _plain(loaded, (), path, locations), locations


def read_recipe(path: Path) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """Content of a file, and `file:line` of every key. Raises RecipeError, with the line, if it is no YAML mapping."""
    return _read_cached(path, path.stat().st_mtime_ns)


def _read_quickly(path: Path) -> tuple[dict[str, Any], dict[KeyPath, str]] | None:
    """The same by the C parser; None where the file has a mistake, or something unusual."""
    try:
        content = path.read_bytes() if path.stat().st_size <= LARGEST else b""
        read = read_quickly(content.decode())
    except (OSError, UnicodeDecodeError):
        return None
    return (read[0], {key: f"{path}:{line}" for key, line in read[1].items()}) if read is not None else None


def _plain(node: Any, key_path: KeyPath, path: Path, locations: dict[KeyPath, str]) -> Any:
    """Convert a ruamel round-trip node to plain Python values; record `file:line` of every key in `locations`."""
    if isinstance(node, CommentedMap):
        result = {}
        for key, value in node.items():
            if key is None:
                raise RecipeError(f"{path}:{node.lc.key(key)[0] + 1}: a key is empty (null); quote it or name it")
            locations[(*key_path, str(key))] = f"{path}:{node.lc.key(key)[0] + 1}"
            result[str(key)] = _plain(value, (*key_path, str(key)), path, locations)
        return result
    if isinstance(node, CommentedSeq):
        for index in range(len(node)):
            locations[(*key_path, str(index))] = f"{path}:{node.lc.item(index)[0] + 1}"
        return [_plain(value, (*key_path, str(index)), path, locations) for index, value in enumerate(node)]
    if isinstance(node, bool) or node is None:
        return node
    for scalar in (int, float, str):
        if isinstance(node, scalar):
            return scalar(node)
    return node
