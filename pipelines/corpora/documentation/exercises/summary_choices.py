"""Which of four summaries belongs to a description?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise, described, with_others

CHOICES = 4


class SummaryChoices(Exercise, name="summary_choices"):
    """All four are from one subpackage."""

    columns: ClassVar[Mapping[str, str]] = {
        "context": "string",
        "question": "string",
        "choices": "list<string>",
        "answer": "int64",
    }

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry, others in with_others(described(entries), CHOICES - 1):
            answer = entry.draw("answer", CHOICES)
            choices = [other.parts.summary for other in others]
            choices.insert(answer, entry.parts.summary)
            question = "Which summary belongs to this description?"
            yield entry, {"context": entry.description, "question": question, "choices": choices, "answer": answer}
