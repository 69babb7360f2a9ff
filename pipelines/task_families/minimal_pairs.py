"""Minimal pairs: which of two sentences that differ in one point is acceptable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, OmissionCallback, Problem, Row, TaskFamily
from pipelines.task_families.grouped_accuracy import accuracies, group_statistics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NEITHER = -1


class MinimalPairs(TaskFamily, name="minimal_pairs"):
    """Which of two sentences that differ in one point is acceptable; accuracy over all pairs, and the mean of the
    paradigms.

    A language model's answer is the sentence with the higher probability; a tie is wrong.
    """

    paper: ClassVar[str] = "arXiv:1912.00582"
    columns: ClassVar[dict[str, str]] = {
        "sentences": "list<string>",
        "answer": "int64",
        "phenomenon": "string",
        "paradigm": "string",
    }
    optional: ClassVar[frozenset[str]] = frozenset({"phenomenon", "paradigm"})
    target: ClassVar[tuple[str, ...]] = ("answer",)
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "mean_of_paradigms")

    def text(self, row: Row) -> str:
        """Both sentences."""
        return "\n".join(row["sentences"])

    def problem(self, row: Row) -> Problem | None:
        """Not exactly two sentences, an empty one, identical sentences, or an answer other than 0 and 1."""
        sentences, answer = row["sentences"] or [], row["answer"]
        if len(sentences) != 2:
            return Problem("sentences are not two", f"the column 'sentences' holds {len(sentences)}, expected two")
        if not all((sentence or "").strip() for sentence in sentences):
            return Problem("sentences holds an empty one", "the column 'sentences' holds an empty sentence")
        if sentences[0] == sentences[1]:
            return Problem("sentences are the same", f"the column 'sentences' holds {sentences[0]!r} twice")
        if answer not in (0, 1):
            return Problem("answer is neither sentence", f"the column 'answer' holds {answer!r}, expected 0 or 1")
        return None

    def convert_published(self, record: Row, on_omission: OmissionCallback) -> Row:
        """Convert a record of BLiMP: `sentence_good`, `sentence_bad`, in an order that is derived from their hash."""
        good, bad = record.get("sentence_good"), record.get("sentence_bad")
        if good is None or bad is None:
            return record
        answer = sha256(f"{good}\n{bad}".encode()).digest()[0] % 2
        return {
            "phenomenon": record.get("linguistics_term", ""),
            "paradigm": record.get("UID", ""),
            **record,
            "sentences": [bad, good] if answer else [good, bad],
            "answer": answer,
        }

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Empty: every pair has its own answers."""
        return []

    def gold(self, row: Row) -> Answer:
        """The index of the acceptable sentence, and the paradigm."""
        return int(row["answer"]), str(row["paradigm"] or "")

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 2]: 1 for the acceptable sentence; index of the paradigm."""
        right = [index == given for (index, _), given in zip(gold, answers, strict=True)]
        return group_statistics(right, [paradigm for _, paradigm in gold])

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Accuracy over all pairs, and the mean accuracy of the paradigms that occur."""
        return dict(zip(self.metrics, accuracies(statistics), strict=True))

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`sentence1: … sentence2: … acceptable:`"""
        first, second = row["sentences"]
        return f"sentence1: {first} sentence2: {second} acceptable:"

    def answer_text(self, row: Row) -> str:
        """`sentence1` or `sentence2`."""
        return f"sentence{row['answer'] + 1}"

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """Index of the named sentence; −1 for any other text."""
        named = re.fullmatch(r"sentence ?([12])", " ".join(text.split()))
        return int(named[1]) - 1 if named else NEITHER
