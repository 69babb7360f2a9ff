"""Tagging: an IOB2 tag for every word; runs of tags are entities."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, Problem, Row, TaskFamily
from pipelines.task_families.writing_systems import join_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

OUTSIDE = "O"
NO_ENTITIES = "none"
"""Generated text for a sentence without entities."""
_TAG = re.compile(r"O|[BI]-.+", re.DOTALL)


class Tagging(TaskFamily, name="tagging"):
    """An IOB2 tag for every word; precision, recall and F1 of exact entities as in the script conlleval.

    In IOB2 `B-X` begins an entity of type X, `I-X` continues it, `O` is outside. An `I-X` that continues nothing begins
    an entity, as in conlleval and in seqeval's default mode; `legal` is the share of valid transitions.
    """

    paper: ClassVar[str] = "arXiv:cs/0306050"
    columns: ClassVar[dict[str, str]] = {"tokens": "list<string>", "tags": "list<string>"}
    target: ClassVar[tuple[str, ...]] = ("tags",)
    hub_category: ClassVar[str | None] = "token-classification"
    metrics: ClassVar[tuple[str, ...]] = ("f1", "precision", "recall", "legal")

    def text(self, row: Row) -> str:
        """The words as a sentence."""
        return join_words(row["tokens"])

    def problem(self, row: Row) -> Problem | None:
        """No words, an empty word, not as many tags as words, or tags that are not IOB2."""
        tokens, tags = row["tokens"] or [], row["tags"] or []
        if not tokens:
            return Problem("tokens is empty", "the column 'tokens' is empty")
        if len(tokens) != len(tags):
            message = f"the column 'tags' holds {len(tags)} tags for {len(tokens)} tokens"
            return Problem("not as many tags as tokens", message)
        for number, (token, tag) in enumerate(zip(tokens, tags, strict=True)):
            if not (token or "").strip():
                return Problem(
                    "tokens holds an empty word", f"the column 'tokens' holds an empty word, number {number}"
                )
            if not _TAG.fullmatch(tag or ""):
                message = f"the column 'tags' holds {tag!r}, number {number}: expected O, B-… or I-…"
                return Problem("tags holds an invalid IOB2 tag", message)
        invalid = [(n, a, b) for n, (a, b) in enumerate(pairwise([OUTSIDE, *tags])) if not is_valid_transition(a, b)]
        if invalid:
            number, before, tag = invalid[0]
            message = f"the column 'tags' holds {tag!r} after {before!r}, number {number}: in IOB2 it begins with B-"
            return Problem("tags begins an entity with I-", message, len(invalid))
        return None

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """`O`, then both tags of every type, sorted by type."""
        types = sorted({tag[2:] for row in rows for tag in row["tags"] if tag != OUTSIDE})
        return [OUTSIDE, *(f"{prefix}-{kind}" for kind in types for prefix in "BI")]

    def gold(self, row: Row) -> Answer:
        """The tags."""
        return list(row["tags"])

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 5]: correct, given and expected entities; invalid and all IOB2 transitions, the first one from `O`."""
        import numpy as np

        rows = np.zeros((len(gold), 5))
        for row, right, given in zip(rows, gold, answers, strict=True):
            expected, predicted = set(entities(right)), set(entities(given))
            forbidden = sum(not is_valid_transition(a, b) for a, b in pairwise([OUTSIDE, *given]))
            row[:] = len(expected & predicted), len(predicted), len(expected), forbidden, len(given)
        return rows

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Micro-averages over all entities; 0 where the denominator is 0."""
        right, given, expected, forbidden, transitions = statistics.sum(axis=0)
        return {
            "f1": float(2 * right / (given + expected)) if given + expected else 0.0,
            "precision": float(right / given) if given else 0.0,
            "recall": float(right / expected) if expected else 0.0,
            "legal": float(1 - forbidden / transitions) if transitions else 1.0,
        }

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`text: … entities:`"""
        return f"text: {join_words(row['tokens'])} entities:"

    def answer_text(self, row: Row) -> str:
        """`person: Ada Lovelace; place: London`: the entities in order, or `none`."""
        tokens = row["tokens"]
        parts = [f"{kind}: {join_words(tokens[first:after])}" for first, after, kind in entities(row["tags"])]
        return "; ".join(parts) or NO_ENTITIES

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """Tags of the written entities.

        Each entity is located, ignoring spaces, at its first occurrence after the previous one. Text that is not `type:
        words` of a known type, or does not occur, is ignored: that entity is then missed.
        """
        tokens = row["tokens"]
        tags = [OUTSIDE] * len(tokens)
        begin = 0
        kinds = "|".join(
            sorted({re.escape(label[2:]) for label in labels if label != OUTSIDE}, key=lambda kind: -len(kind))
        )
        if not kinds:
            return tags
        marks = list(re.finditer(rf"(?:^|;)\s*({kinds})\s*:", text))
        ends = [mark.start() for mark in marks[1:]] + [len(text)]
        for mark, end in zip(marks, ends, strict=False):
            span = _find(tokens, "".join(text[mark.end() : end].split()), begin)
            if span:
                begin = span[1]
                tags[span[0] : begin] = [f"B-{mark[1]}", *[f"I-{mark[1]}"] * (begin - span[0] - 1)]
        return tags


def is_valid_transition(before: str, tag: str) -> bool:
    """Whether IOB2 allows `tag` after `before`; the first word follows `O`."""
    return not tag.startswith("I-") or (before != OUTSIDE and before[2:] == tag[2:])


def entities(tags: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Begin, end (exclusive) and type of every entity, in words."""
    first, kind = 0, ""
    for number, tag in enumerate([*tags, OUTSIDE]):
        if kind and (not tag.startswith("I-") or tag[2:] != kind):
            yield first, number, kind
            kind = ""
        if tag != OUTSIDE and not kind:
            first, kind = number, tag[2:]


def _find(tokens: Sequence[str], words: str, begin: int) -> tuple[int, int] | None:
    """Begin and end (exclusive) of the first run of tokens, from `begin` on, that makes up `words`."""
    for first in range(begin, len(tokens)):
        joined = ""
        for after in range(first, len(tokens)):
            joined += "".join(tokens[after].split())
            if joined == words:
                return first, after + 1
            if not words.startswith(joined):
                break
    return None
