"""Which kinds of parameters does the function take that a text describes?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise, described

KINDS = {
    "array": re.compile(r"array|matrix|matrices", re.IGNORECASE),
    "boolean": re.compile(r"\bbool|\b(?:True|False)\b"),
    "function": re.compile(r"\bcallable|\bfunction", re.IGNORECASE),
    "integer": re.compile(r"\bint\b|\binteger", re.IGNORECASE),
    "real number": re.compile(r"\bfloat|\bscalar|\breal\b", re.IGNORECASE),
    "sequence": re.compile(r"\btuple|\blist\b|\bsequence", re.IGNORECASE),
    "text": re.compile(r"\bstr(?:ing)?\b|['\"]\w+['\"]"),
}
"""Kind of a parameter → how its type is written."""


class KindsOfParameters(Exercise, name="kinds_of_parameters"):
    """The labels of a summary and description are the kinds of the parameters, which the text is shown without."""

    columns: ClassVar[Mapping[str, str]] = {"text": "string", "labels": "list<string>"}

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry in described(entries):
            written = " ".join(parameter.type for parameter in entry.parts.parameters)
            labels = [kind for kind, pattern in KINDS.items() if pattern.search(written)]
            if entry.parts.parameters:
                yield entry, {"text": f"{entry.parts.summary}\n\n{entry.description}", "labels": labels}
