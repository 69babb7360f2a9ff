"""Read a recipe file: YAML as plain Python values, with the line of every key."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.reader import ReaderError

from pipelines.components.plain_yaml import refuse_tags
from pipelines.errors import RecipeError

FILE_KEYS = ("name", "paper", "systems", "system_stages", "settings", "base", "variants", "stages", "claims")
"""Top-level keys of a recipe file."""
LARGEST = 262_144
"""Bytes of a recipe file; the longest that is shipped has a fortieth."""
DEEPEST = 100
_BRACKETS = re.compile(r"[\[\]{}]")
KeyPath: TypeAlias = tuple[str, ...]
"""Keys that lead to a value, outermost first; `()` is the document."""


def _text(path: Path) -> str:
    """The text of a file, unless reading it as YAML would take minutes or more levels than Python has."""
    size = path.stat().st_size
    if size > LARGEST:
        raise RecipeError(f"{path}: {size:,} bytes are more than a recipe may have ({LARGEST:,})")
    text = path.read_bytes().decode()
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            raise RecipeError(f"{path}: values are nested too deeply for a recipe")
    return text


@lru_cache(maxsize=256)
def _read_cached(path: Path, modified: int) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    try:
        loaded = YAML(typ="rt").load(_text(path))
    except RecursionError:
        raise RecipeError(f"{path}: values are nested too deeply for a recipe") from None
    except DuplicateKeyError as error:
        assert error.problem_mark is not None and error.problem is not None
        line, name = error.problem_mark.line + 1, error.problem.split('"')[1]
        raise RecipeError(f"{path}:{line}: the key {name!r} is given twice; rename or remove one of the two") from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RecipeError(f"{path}:{line}: not valid YAML: {error.problem}") from None
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    except ReaderError as error:
        raise RecipeError(f"{path}: contains the control character {error.character}; remove it") from None
    if not isinstance(loaded, CommentedMap):
        raise RecipeError(f"{path}:1: a recipe is a mapping with the keys {', '.join(FILE_KEYS)}")
    refuse_tags(loaded, path)
    locations: dict[KeyPath, str] = {(): f"{path}:1"}
    return _plain(loaded, (), path, locations), locations


def read_recipe(path: Path) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    """Content of a file, and `file:line` of every key. Raises RecipeError, with the line, if it is no YAML mapping."""
    return _read_cached(path, path.stat().st_mtime_ns)


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
