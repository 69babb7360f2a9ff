"""A YAML file as plain values, with the line on which each key was written."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from pipelines.components.plain_yaml import refuse_tags
from pipelines.errors import RecipeError

FILE_KEYS = ("name", "paper", "settings", "base", "variants", "stages", "claims")
KeyPath: TypeAlias = tuple[str, ...]
"""The keys that lead to a value."""


@lru_cache(maxsize=256)
def _read_cached(path: Path, modified: int) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    try:
        loaded = YAML(typ="rt").load(path.read_bytes().decode())
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RecipeError(f"{path}:{line}: not valid YAML: {error.problem}") from None
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    except ReaderError as error:
        raise RecipeError(f"{path}: holds a control character, number {error.character}; remove it") from None
    if not isinstance(loaded, CommentedMap):
        raise RecipeError(f"{path}:1: a recipe is a mapping with the keys {', '.join(FILE_KEYS)}")
    refuse_tags(loaded, path)
    places: dict[KeyPath, str] = {(): f"{path}:1"}
    return _plain(loaded, (), path, places), places


def read_recipe(path: Path) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """The file's content, and `file:line` of every key. RecipeError, with the line, for what is no mapping in YAML."""
    return _read_cached(path, path.stat().st_mtime_ns)


def _plain(node: Any, at: KeyPath, path: Path, places: dict[KeyPath, str]) -> Any:
    """ruamel's round-trip node as plain Python values; the line of every key is noted in `places`."""
    if isinstance(node, CommentedMap):
        result = {}
        for key, value in node.items():
            places[(*at, str(key))] = f"{path}:{node.lc.key(key)[0] + 1}"
            result[str(key)] = _plain(value, (*at, str(key)), path, places)
        return result
    if isinstance(node, CommentedSeq):
        for index in range(len(node)):
            places[(*at, str(index))] = f"{path}:{node.lc.item(index)[0] + 1}"
        return [_plain(value, (*at, str(index)), path, places) for index, value in enumerate(node)]
    if isinstance(node, bool) or node is None:
        return node
    for scalar in (int, float, str):
        if isinstance(node, scalar):
            return scalar(node)
    return node
