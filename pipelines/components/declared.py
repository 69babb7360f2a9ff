"""A batch as one component may read it: only the fields that it declares, so that no need of a part stays hidden.

    DeclaredBatch(batch, reader, fields)      a dict that refuses to read any other field
    whole(batch)                              the same batch without a reader, to pass on

Iterating, `**batch` and `items()` pass all fields on: they are how a part returns a batch that it adds to. Reading one
by its name (`batch[field]`, `batch.get(field)`, `field in batch`) is what has to be declared.

A family wraps the methods of its members that read batches as each member is defined, so that every call of them is
held to the declaration, in a recipe and in a test alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import wraps
from typing import Any, TypeVar

from pipelines.components import Component, class_words
from pipelines.errors import RecipeError

K = TypeVar("K")
V = TypeVar("V")


class DeclaredBatch(dict[K, V]):
    """The `fields` of `batch` that `reader` declares; reading another raises RecipeError.

    Args:
        batch: from field to value.
        reader: the component that reads it.
        fields: what it declares.
        declaration: names of the attributes that do so, for the message.
    """

    __slots__ = ("_declaration", "_fields", "_reader")

    def __init__(self, batch: Mapping[K, V], reader: Component, fields: Set[K], declaration: str) -> None:
        super().__init__(batch)
        self._reader, self._fields, self._declaration = reader, fields, declaration

    def __getitem__(self, field: K) -> V:
        if field not in self._fields:
            self._refuse(field)
        return super().__getitem__(field)

    def get(self, field: K, default: Any = None) -> Any:
        if field not in self._fields:
            self._refuse(field)
        return super().get(field, default)

    def __contains__(self, field: object) -> bool:
        if field not in self._fields:
            self._refuse(field)
        return super().__contains__(field)

    def __missing__(self, field: K) -> V:
        names = ", ".join(sorted(map(str, self)))
        raise RecipeError(f"{self._name()} needs the field {field}, which this batch has not; it has {names}")

    def _refuse(self, field: object) -> None:
        cls = type(self._reader)
        raise RecipeError(
            f"{self._name()} reads the field {field} of a batch, which it does not declare: add it to "
            f"{self._declaration} of {cls.__name__} ({cls.__module__})"
        )

    def _name(self) -> str:
        return f"{class_words(self._reader.family())} {self._reader.name}"


def whole(batch: Mapping[K, V]) -> dict[K, V]:
    """`batch` with all of its fields readable: a copy that belongs to no reader."""
    return dict(batch)


def wrap_own(cls: type, method: str, wrapper: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace `method` of `cls`, if `cls` itself defines it, by `wrapper(method)` with its name and documentation."""
    own = cls.__dict__.get(method)
    if own is not None:
        setattr(cls, method, wraps(own)(wrapper(own)))
