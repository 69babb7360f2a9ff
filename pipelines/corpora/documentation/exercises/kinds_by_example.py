"""Which types in a list of parameters are of which kind, as a few tagged lists show?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise
from pipelines.corpora.documentation.exercises.kinds_of_parameters import KINDS
from pipelines.corpora.documentation.exercises.parameter_tags import add_words
from pipelines.task_families.few_shot_tagging import types_of

KINDS_OF_PART = {
    "train": ("array", "boolean", "text"),
    "validation": ("integer", "sequence"),
    "test": ("function", "real number"),
}
"""No two parts have a kind in common."""
SHOTS = 2
"""Support sentences for each kind."""
PARAMETERS = 4
"""Maximum parameters in one list."""


class TaggedList(NamedTuple):
    """The names and types of some parameters of a function, with the kinds of the types."""

    tokens: tuple[str, ...]
    tags: tuple[str, ...]

    @property
    def kinds(self) -> set[str]:
        return types_of([self.tags])


class KindsByExample(Exercise, name="kinds_by_example"):
    """The kinds of a part are those of its lists and of their support; parameters of other kinds are outside."""

    columns: ClassVar[Mapping[str, str]] = {
        "tokens": "list<string>",
        "tags": "list<string>",
        "support_tokens": "list<list<string>>",
        "support_tags": "list<list<string>>",
    }

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        lists = [(entry, _tagged(entry)) for entry in entries if entry.part in KINDS_OF_PART]
        lists = [(entry, one) for entry, one in lists if one.kinds]
        having: dict[tuple[str, str], dict[TaggedList, None]] = defaultdict(dict)
        for entry, one in lists:
            for kind in one.kinds:
                having[entry.part, kind].setdefault(one)
        for entry, one in lists:
            support: dict[TaggedList, None] = {}
            for kind in KINDS_OF_PART[entry.part]:
                others = [each for each in having[entry.part, kind] if each.tokens != one.tokens]
                support |= dict.fromkeys(entry.from_drawn(f"support of {kind}", others)[:SHOTS])
            if one.kinds <= {kind for each in support for kind in each.kinds}:
                yield (
                    entry,
                    {
                        "tokens": [*one.tokens],
                        "tags": [*one.tags],
                        "support_tokens": [[*each.tokens] for each in support],
                        "support_tags": [[*each.tags] for each in support],
                    },
                )


def _tagged(entry: DocumentedEntry) -> TaggedList:
    tokens: list[str] = []
    tags: list[str] = []
    for parameter in entry.parts.parameters[:PARAMETERS]:
        kind = next((kind for kind in KINDS_OF_PART[entry.part] if KINDS[kind].search(parameter.type)), None)
        add_words(tokens, tags, f"{', '.join(parameter.names)} :", None)
        add_words(tokens, tags, parameter.type, kind)
    return TaggedList(tuple(tokens), tuple(tags))
