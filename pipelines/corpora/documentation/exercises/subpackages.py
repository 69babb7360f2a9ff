"""Which subpackage does a text document?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise


class Subpackages(Exercise, name="subpackages"):
    """The label of a text is the subpackage that it documents."""

    columns: ClassVar[Mapping[str, str]] = {"text": "string", "label": "string"}

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry in entries:
            yield entry, {"text": entry.text, "label": entry.label}
