"""Plain YAML: values only, without object tags and without aliases that expand beyond bounds.

ruamel's round-trip loader constructs no objects whatever a tag requests. Such tags are rejected all the same, so that
users do not believe that they have an effect, and no other YAML reader of the same file executes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from pipelines.errors import RecipeError

LARGEST = 262_144
"""Bytes of a file; the longest that is shipped has a fortieth."""
DEEPEST = 100
MOST_VALUES = 100_000
"""Maximum number of values of a file with its aliases expanded."""
_BRACKETS = re.compile(r"[\[\]{}]")
_WORDS = re.compile(r"\s+")


def read_yaml(path: Path, kind: str) -> Any:
    """Read the file at `path`, which is `kind` ("a recipe"), as ruamel's mappings and lists, which have line numbers.

    RecipeError, with the line where there is one, for a file that is no YAML, that requests objects, or that would
    take minutes to read.
    """
    try:
        document = YAML(typ="rt").load(_text(path, kind))
    except RecursionError:
        raise RecipeError(f"{path}: values are nested too deeply for {kind}") from None
    except DuplicateKeyError as error:
        assert error.problem_mark is not None and error.problem is not None
        line, name = error.problem_mark.line + 1, error.problem.split('"')[1]
        raise RecipeError(f"{path}:{line}: the key {name!r} is given twice; rename or remove one of the two") from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise RecipeError(f"{path}:{line}: not valid YAML: {_sentence(error.problem)}") from None
    except ReaderError as error:
        raise RecipeError(f"{path}: contains the control character {error.character}; remove it") from None
    except (YAMLError, ValueError, TypeError, AttributeError, LookupError, OverflowError, NotImplementedError) as error:
        # the constructors of numbers, dates and merge keys raise what Python's own do
        raise RecipeError(f"{path}: not valid YAML: {_sentence(error)}") from None
    refuse_tags(document, path)
    return document


def _text(path: Path, kind: str) -> str:
    """The text of a file, unless reading it as YAML would take minutes or more levels than Python has."""
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= LARGEST else b""
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read: {error.strerror}; check the path and its permissions") from None
    if size > LARGEST:
        raise RecipeError(f"{path}: {size:,} bytes are more than {kind} may have ({LARGEST:,})")
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    depth = 0
    for bracket in _BRACKETS.findall(text):
        depth += 1 if bracket in "[{" else -1
        if depth > DEEPEST:
            raise RecipeError(f"{path}: values are nested too deeply for {kind}")
    return text


def _sentence(problem: object) -> str:
    """A library's message of several lines as one."""
    return _WORDS.sub(" ", str(problem)).strip()


def refuse_tags(document: Any, path: Path) -> None:
    """Raise RecipeError, with the line, for any tag, and for aliases that expand to more than `MOST_VALUES` values.

    `document` is the result of ruamel's round-trip loader for the file at `path`.
    """
    pending: list[tuple[Any, int]] = [(document, 1)]
    count = 0
    while pending:
        node, line = pending.pop()
        count += 1
        if count > MOST_VALUES:
            raise RecipeError(f"{path}: more than {MOST_VALUES:,} values with its aliases expanded; use fewer aliases")
        zero_based = getattr(getattr(node, "lc", None), "line", None)
        line = line if zero_based is None else zero_based + 1
        tag = getattr(getattr(node, "tag", None), "value", None)
        if tag is not None:
            raise RecipeError(
                f"{path}:{line}: the tag {tag} requests an object, expected a plain value; no objects are constructed "
                "from YAML here, remove the tag"
            )
        pending += ((inner, line) for inner in _inside(node))


def _inside(node: Any) -> Iterator[Any]:
    if isinstance(node, Mapping):
        yield from node
        yield from node.values()
    elif isinstance(node, Sequence) and not isinstance(node, (str, bytes)):
        yield from node
