"""The token types that the parts of a stage write."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pipelines.recipe.schema import Stage


@runtime_checkable
class WritesTypes(Protocol):
    """A head that encodes rows with token types of its own."""

    name: str

    @property
    def type_count(self) -> int:
        """Number of token types that the backbone must have."""


def written_types(stage: Stage) -> list[tuple[str, str, int]]:
    """Key, name and number of token types of each part of `stage` that writes some."""
    written = [("corruption", one.name, one.token_types) for one in stage.corruption]
    head: object = stage.head
    if isinstance(head, WritesTypes):
        written.append(("head", head.name, head.type_count))
    return written
