"""The summary of a description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise, described


class Summaries(Exercise, name="summaries"):
    """The summary is the text to be written for a description."""

    columns: ClassVar[Mapping[str, str]] = {"source": "string", "target": "string"}

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry in described(entries):
            yield entry, {"source": entry.description, "target": entry.parts.summary}
