"""Where are the names and the types in a list of parameters?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import LISTED, DocumentedEntry, EntryExamples, Exercise

_TOKEN = re.compile(r"\w+|[^\w\s]")


class ParameterTags(Exercise, name="parameter_tags"):
    """Entries of a list of parameters; their names and types are the entities."""

    columns: ClassVar[Mapping[str, str]] = {"tokens": "list<string>", "tags": "list<string>"}

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry in entries:
            tokens: list[str] = []
            tags: list[str] = []
            for parameter in entry.parts.parameters[:LISTED]:
                for number, name in enumerate(parameter.names):
                    add_words(tokens, tags, ", " if number else "", None)
                    add_words(tokens, tags, name, "name")
                add_words(tokens, tags, ":", None)
                add_words(tokens, tags, parameter.type, "type")
                add_words(tokens, tags, parameter.first_sentence, None)
            if tokens:
                yield entry, {"tokens": tokens, "tags": tags}


def add_words(tokens: list[str], tags: list[str], text: str, kind: str | None) -> None:
    """Append the words of `text`, all in one entity or none."""
    words = _TOKEN.findall(text)
    tokens += words
    tags += ["O" if kind is None else f"{'I' if number else 'B'}-{kind}" for number in range(len(words))]
