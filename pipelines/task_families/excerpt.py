"""Examples of a table that are read a bounded number at a time, and their numbers in error messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.task_families import Row


class Excerpt(list["Row"]):
    """Consecutive examples of a longer sequence."""

    def __init__(self, rows: Iterable[Row] = (), first: int = 0) -> None:
        super().__init__(rows)
        self.first = first
        """Number of the first of them in the whole sequence."""


def number_of(examples: Sequence[Row], index: int) -> int:
    """The number by which a message names example `index` of `examples`."""
    return examples.first + index if isinstance(examples, Excerpt) else index


def excerpts(rows: Iterable[Row], most: int, characters: int) -> Iterator[Excerpt]:
    """`rows` in order, at most `most` at a time, and no further ones once their texts have so many `characters`."""
    held, size = Excerpt(), 0
    for row in rows:
        held.append(row)
        size += len(row.get("text") or "")
        if len(held) == most or size >= characters:
            yield held
            held, size = Excerpt(first=held.first + len(held)), 0
    if held:
        yield held
