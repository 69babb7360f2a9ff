"""Plain YAML: values only, without object tags and without aliases that expand beyond bounds.

ruamel's round-trip loader constructs no objects whatever a tag requests. Such tags are rejected all the same, so that
users do not believe that they have an effect, and no other YAML reader of the same file executes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.errors import RecipeError

MOST_VALUES = 100_000
"""Maximum number of values of a file with its aliases expanded."""


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
