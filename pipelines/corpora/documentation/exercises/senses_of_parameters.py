"""Which of several definitions does the name of a parameter have in this description?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise, described

DEFINITIONS = 4
"""Maximum definitions of an example."""


class SensesOfParameters(Exercise, name="senses_of_parameters"):
    """The name stands in backquotes in a description; the other definitions are those that functions of the same part
    give to parameters with this name. `unseen` is the family's to set."""

    columns: ClassVar[Mapping[str, str]] = {
        "context": "string",
        "word": "string",
        "word_index": "int64",
        "definitions": "list<string>",
        "answer": "int64",
        "unseen": "int64",
    }

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        inventory = _definitions(entries)
        for entry in described(entries):
            for name, definition in _own(entry).items():
                quoted = re.search(rf"(?<=`){re.escape(name)}(?=`)", entry.description)
                if quoted is None or definition in entry.description:
                    continue
                others = [one for one in inventory[entry.part, name] if one != definition]
                definitions = entry.from_drawn(f"definitions of {name}", others)[: DEFINITIONS - 1]
                if definitions:
                    answer = entry.draw(f"sense of {name}", len(definitions) + 1)
                    definitions.insert(answer, definition)
                    yield (
                        entry,
                        {
                            "context": entry.description,
                            "word": name,
                            "word_index": quoted.start(),
                            "definitions": definitions,
                            "answer": answer,
                            "unseen": 0,
                        },
                    )


def _own(entry: DocumentedEntry) -> dict[str, str]:
    """Name → definition of the parameters of a function that say what they are."""
    return {
        name: " ".join(parameter.first_sentence.split())
        for parameter in entry.parts.parameters
        for name in parameter.names
        if parameter.first_sentence.strip()
    }


def _definitions(entries: Sequence[DocumentedEntry]) -> dict[tuple[str, str], list[str]]:
    """Part and name → the definitions that functions of the part give to the name, in their order, each once."""
    known: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for entry in entries:
        for name, definition in _own(entry).items():
            known[entry.part, name].setdefault(definition)
    return {key: list(definitions) for key, definitions in known.items()}
