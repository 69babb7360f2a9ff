"""Word analogies: a is to b as c is to d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, Problem, Row, TaskFamily, empty_text_problem
from pipelines.task_families.grouped_accuracy import accuracies, group_statistics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class WordAnalogies(TaskFamily, name="word_analogies"):
    """The word d such that a is to b as c is to d; accuracy over all questions, and the mean over relations."""

    paper: ClassVar[str] = "arXiv:1301.3781"
    columns: ClassVar[dict[str, str]] = {
        "relation": "string",
        "a": "string",
        "b": "string",
        "c": "string",
        "d": "string",
    }
    optional: ClassVar[frozenset[str]] = frozenset({"relation"})
    target: ClassVar[tuple[str, ...]] = ("d",)
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "mean_of_relations")

    def text(self, row: Row) -> str:
        """All words, including the fourth if present, since three words may have several answers."""
        return "\n".join(row[name] for name in "abcd" if row.get(name))

    def problem(self, row: Row) -> Problem | None:
        """An empty word."""
        return empty_text_problem(row, *"abcd")

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Empty: any word may be an answer."""
        return []

    def gold(self, row: Row) -> Answer:
        """The fourth word, and the relation."""
        return str(row["d"]), str(row["relation"] or "")

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 2]: 1 for the correct word; index of the relation."""
        right = [word == given for (word, _), given in zip(gold, answers, strict=True)]
        return group_statistics(right, [relation for _, relation in gold])

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Accuracy over all questions, and the mean accuracy of the relations that occur."""
        return dict(zip(self.metrics, accuracies(statistics), strict=True))

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`a : b :: c :`"""
        return f"{row['a']} : {row['b']} :: {row['c']} :"

    def answer_text(self, row: Row) -> str:
        """The fourth word."""
        return str(row["d"])

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """The text itself."""
        return text.strip()
