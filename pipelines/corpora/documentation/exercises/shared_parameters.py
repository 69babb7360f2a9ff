"""How many parameters do two functions share?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise, described, with_others

SCALE = 5
"""Largest similarity, as in the semantic textual similarity benchmark."""


class SharedParameters(Exercise, name="shared_parameters"):
    """Descriptions of two functions, and 5 times the Jaccard index of the names of their parameters."""

    columns: ClassVar[Mapping[str, str]] = {"text_a": "string", "text_b": "string", "label": "double"}

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        with_names = [entry for entry in described(entries) if entry.parts.parameters]
        far = {entry.source: others for entry, others in with_others(with_names, 1)}
        for entry, following in zip(with_names, [*with_names[1:], None], strict=True):
            # neighbours in a module often share parameters, other functions of the subpackage rarely do
            near = [following] if following and following.part == entry.part else []
            for other in near + far.get(entry.source, []):
                first, second = entry.parameter_names, other.parameter_names
                score = SCALE * len(first & second) / len(first | second)
                yield entry, {"text_a": entry.description, "text_b": other.description, "label": round(score, 4)}
