"""Which word does each word of a statement depend on, and how?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import ClassVar

from pipelines.corpora.documentation.code_trees import CodeTree, code_tree
from pipelines.corpora.documentation.exercises import LISTED, DocumentedEntry, EntryExamples, Exercise
from pipelines.corpora.documentation.parses import code_examples

FEWEST, MOST = 5, 60
"""Words of a statement."""
RELATIONS = frozenset(
    {"root", "punct", "fixed", "value", "args", "elts", "targets", "keywords", "left", "right", "operand", "slice"}
)
"""Those of nearly all statements; others occur too rarely for each part to have them."""


class TreesOfCode(Exercise, name="trees_of_code"):
    """Statements in examples of code; heads and relations follow from Python's own syntax tree."""

    columns: ClassVar[Mapping[str, str]] = {
        "sentence": "string",
        "words": "list<string>",
        "heads": "list<int64>",
        "relations": "list<string>",
    }

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry in entries:
            trees = [code_tree(line) for line in code_examples(entry.text) if "\n" not in line]
            for tree in [one for one in trees if one is not None and _is_common(one)][:LISTED]:
                yield entry, asdict(tree)


def _is_common(tree: CodeTree) -> bool:
    return FEWEST <= len(tree.words) <= MOST and set(tree.relations) <= RELATIONS
