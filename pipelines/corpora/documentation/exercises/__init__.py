"""Exercises: labelled examples with exact answers, made of documentation strings, so that each task family runs without
other data. They are no benchmarks.

An exercise fills the columns of the families that have these. All its random choices are derived from hashes of the
sources. An example is in the part of its module, and so is everything else that it uses.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias, TypeVar

from pipelines.components import Component, discover
from pipelines.corpora.documentation.hashed_draws import hashed_draw
from pipelines.corpora.documentation.numpydoc import ParsedDocstring
from pipelines.corpora.examples.files import Example

T = TypeVar("T")
MAX_DESCRIPTION = 1200
"""Maximum characters of a description; the rest is cut off."""
MIN_DESCRIPTION = 120
LISTED = 6
"""Maximum parameters in one list."""


@dataclass(frozen=True)
class DocumentedEntry:
    """One documentation string."""

    text: str
    label: str
    source: str
    part: str
    parts: ParsedDocstring

    @property
    def description(self) -> str:
        return self.parts.description[:MAX_DESCRIPTION].strip()

    @property
    def parameter_names(self) -> set[str]:
        return {name for parameter in self.parts.parameters for name in parameter.names}

    def draw(self, purpose: str, below: int) -> int:
        """A pseudo-random number below `below`, derived from the purpose and the source."""
        return hashed_draw(purpose, self.source, below)

    def from_drawn(self, purpose: str, items: Sequence[T]) -> list[T]:
        """`items`, beginning with the drawn one; those before it are at the end."""
        begin = self.draw(purpose, len(items)) if items else 0
        return [*items[begin:], *items[:begin]]


EntryExamples: TypeAlias = Iterator[tuple[DocumentedEntry, Example]]


class Exercise(Component):
    """A way to make examples of documentation strings."""

    columns: ClassVar[Mapping[str, str]]
    """The columns that it fills, as a task family states them; no other exercise fills the same ones."""

    @abstractmethod
    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        """Examples of `entries`, each with the entry whose source and part are its own."""


def exercise_that_fills(columns: Mapping[str, str]) -> Exercise | None:
    """The exercise with just these columns, if there is one."""
    discover(__name__)
    known: dict[str, type[Exercise]] = Exercise.members  # type: ignore[assignment]  # all members of this family
    return next((one() for one in known.values() if one.columns == columns), None)


def described(entries: Sequence[DocumentedEntry]) -> list[DocumentedEntry]:
    """Entries with a summary and a description that does not repeat it."""
    return [
        entry
        for entry in entries
        if entry.parts.summary
        and len(entry.description) >= MIN_DESCRIPTION
        and entry.parts.summary not in entry.description
    ]


def with_others(
    entries: Sequence[DocumentedEntry], count: int
) -> Iterator[tuple[DocumentedEntry, list[DocumentedEntry]]]:
    """Entries with `count` others of the same part and subpackage whose summaries differ; entries without enough are
    omitted."""
    near: dict[tuple[str, str], list[DocumentedEntry]] = defaultdict(list)
    for entry in entries:
        near[entry.part, entry.label].append(entry)
    for entry in entries:
        chosen: dict[str, DocumentedEntry] = {}
        for other in entry.from_drawn("others", near[entry.part, entry.label]):
            if len(chosen) < count and other.parts.summary != entry.parts.summary:
                chosen.setdefault(other.parts.summary, other)
        if len(chosen) == count:
            yield entry, list(chosen.values())
