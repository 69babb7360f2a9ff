"""Dependency parsing: head and relation of every word of a sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, Problem, Row, TaskFamily, empty_text_problem
from pipelines.task_families.writing_systems import join_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ROOT = 0
"""Head index of the root."""
NO_HEAD = -1
"""Head index of a word without a valid arc in an answer."""
_ARC = re.compile(r"(\d{1,9}):(\S+)")


class DependencyParsing(TaskFamily, name="dependency_parsing"):
    """Head and relation of every word; attachment scores over all words as in CoNLL 2018's evaluation script.

    Words are the syntactic words of Universal Dependencies: French `du` is `de` and `le`. Empty nodes, which only the
    enhanced graph has, are not words. Punctuation counts.
    """

    paper: ClassVar[str] = "doi:10.18653/v1/K18-2001"
    columns: ClassVar[dict[str, str]] = {
        "sentence": "string",
        "words": "list<string>",
        "heads": "list<int64>",
        "relations": "list<string>",
    }
    target: ClassVar[tuple[str, ...]] = ("heads", "relations")
    metrics: ClassVar[tuple[str, ...]] = ("las", "uas", "whole_trees")

    subtypes: bool = False
    """Whether to distinguish `nsubj:pass` from `nsubj`. CoNLL 2018 counts both as `nsubj`."""

    def text(self, row: Row) -> str:
        """The raw sentence."""
        return str(row["sentence"])

    def problem(self, row: Row) -> Problem | None:
        """An empty sentence, word or relation; not as many heads or relations as words; heads that are not a tree with
        one root."""
        if problem := empty_text_problem(row, "sentence"):
            return problem
        words, heads = row["words"] or [], row["heads"] or []
        if not words:
            return Problem("words is empty", "the column 'words' is empty")
        for column in ("heads", "relations"):
            if len(row[column] or []) != len(words):
                message = f"the column {column!r} holds {len(row[column] or [])} for {len(words)} words"
                return Problem(f"not as many {column} as words", message)
        for column in ("words", "relations"):
            blank = next((n for n, value in enumerate(row[column], 1) if not (value or "").strip()), None)
            if blank is not None:
                return Problem(f"{column} holds an empty one", f"the column {column!r} holds nothing for word {blank}")
        return _tree_problem(heads)

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """The relations, sorted."""
        return sorted({self._relation(relation) for row in rows for relation in row["relations"]})

    def gold(self, row: Row) -> Answer:
        """Head and relation of every word; words are counted from 1, the head of the root is 0."""
        return [
            (int(head), self._relation(relation)) for head, relation in zip(row["heads"], row["relations"], strict=True)
        ]

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 4]: words; words with correct head and relation; words with correct head; 1 if all are correct."""
        import numpy as np

        rows = np.zeros((len(gold), 4))
        for row, tree, given in zip(rows, gold, answers, strict=True):
            # words missing from an answer are wrong
            pairs = list(zip(tree, given, strict=False))
            arcs = [right[0] == predicted[0] for right, predicted in pairs]
            labelled = sum(
                same and right[1] == self._relation(predicted[1])
                for same, (right, predicted) in zip(arcs, pairs, strict=True)
            )
            row[:] = len(tree), labelled, sum(arcs), labelled == len(tree)
        return rows

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Labelled and unlabelled attachment scores over all words; share of completely correct sentences."""
        words, labelled, unlabelled, whole = statistics.sum(axis=0)
        return {
            "las": float(labelled / words) if words else 0.0,
            "uas": float(unlabelled / words) if words else 0.0,
            "whole_trees": float(whole / len(statistics)),
        }

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`words: … tree:`"""
        return f"words: {join_words(row['words'])} tree:"

    def answer_text(self, row: Row) -> str:
        """`2:nsubj 0:root 2:obj`: head and relation of each word in order."""
        return " ".join(f"{head}:{relation}" for head, relation in self.gold(row))

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """The written arcs in order; an invalid arc has no head."""
        arcs = [_ARC.fullmatch(part) for part in text.split()[: len(row["words"])]]
        return [(int(arc[1]), arc[2]) if arc else (NO_HEAD, "") for arc in arcs]

    def _relation(self, relation: str) -> str:
        return relation if self.subtypes else relation.partition(":")[0]


def _tree_problem(heads: Sequence[int]) -> Problem | None:
    """Why these heads, counted from 1, are not a tree with one root; None when they are."""
    for word, head in enumerate(heads, 1):
        if head is None or not ROOT <= head <= len(heads):
            message = f"the column 'heads' holds {head} for word {word}, expected 0 (the root) to {len(heads)}"
            return Problem("heads points outside the sentence", message)
    roots = [word for word, head in enumerate(heads, 1) if head == ROOT]
    if len(roots) != 1:
        which = f": words {', '.join(map(str, roots))}" if roots else ""
        message = f"the column 'heads' has {len(roots)} roots (words whose head is 0){which}; a tree has one"
        return Problem("heads has not one root", message)
    reaches_root = [False] * (len(heads) + 1)
    reaches_root[ROOT] = True
    for word in range(1, len(heads) + 1):
        path: list[int] = []
        visited: set[int] = set()
        here = word
        while not reaches_root[here]:
            if here in visited:
                cycle = path[path.index(here) :]
                message = f"the column 'heads' contains a cycle: word {' → '.join(map(str, [*cycle, here]))}"
                return Problem("heads contain a cycle", message)
            visited.add(here)
            path.append(here)
            here = heads[here - 1]
        for node in path:
            reaches_root[node] = True
    return None
