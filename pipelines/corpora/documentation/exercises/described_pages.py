"""Where are headers, names, types and descriptions on a page?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise
from pipelines.corpora.documentation.pages import pages


class DescribedPages(Exercise, name="described_pages"):
    """A page with its headers, names, types and descriptions, and a box for every word."""

    columns: ClassVar[Mapping[str, str]] = {
        "tokens": "list<string>",
        "boxes": "list<list<int64>>",
        "tags": "list<string>",
        "page": "list<int64>",
    }

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry in entries:
            for page in pages(entry.text):
                if any(word.kind for word in page.words):
                    yield entry, {"tokens": page.tokens, "boxes": page.boxes, "tags": page.tags, "page": page.size}
