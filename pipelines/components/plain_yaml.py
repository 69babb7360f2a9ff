"""YAML that says values and nothing else: no tag that asks for an object, no alias that never ends.

ruamel's round-trip loader builds no objects whatever a tag says; here such a tag is refused as well, so that nobody takes it for
something that works, and no later reader of the same file runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.errors import RecipeError

MOST_VALUES = 100_000
"""Values of a file once its aliases are written out."""


def refuse_tags(document: Any, path: Path) -> None:
    """Raise RecipeError, with the line, for any tag, and for aliases that grow without end.

    `document` is what ruamel's round-trip loader made of the file at `path`.
    """
    waiting: list[tuple[Any, int]] = [(document, 1)]
    seen = 0
    while waiting:
        node, line = waiting.pop()
        seen += 1
        if seen > MOST_VALUES:
            raise RecipeError(
                f"{path}: more than {MOST_VALUES:,} values with its aliases written out; write it plainly"
            )
        place = getattr(getattr(node, "lc", None), "line", None)
        line = line if place is None else place + 1
        tag = getattr(getattr(node, "tag", None), "value", None)
        if tag is not None:
            raise RecipeError(
                f"{path}:{line}: the tag {tag} asks for an object, and a plain value was expected; nothing here makes objects "
                "of YAML, take it out"
            )
        waiting += ((inner, line) for inner in _inside(node))


def _inside(node: Any) -> Iterator[Any]:
    if isinstance(node, Mapping):
        yield from node
        yield from node.values()
    elif isinstance(node, Sequence) and not isinstance(node, (str, bytes)):
        yield from node
