"""Does a summary belong to a description?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise, described, with_others


class SummaryPairs(Exercise, name="summary_pairs"):
    """Half of the summaries are of another function of the same subpackage."""

    columns: ClassVar[Mapping[str, str]] = {"text_a": "string", "text_b": "string", "label": "string"}

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry, others in with_others(described(entries), 1):
            belongs = not entry.draw("belongs", 2)
            summary = entry.parts.summary if belongs else others[0].parts.summary
            yield entry, {"text_a": summary, "text_b": entry.description, "label": "same" if belongs else "other"}
