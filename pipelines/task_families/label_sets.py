"""Label sets: any number of labels for one text (multi-label classification)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, Problem, Row, TaskFamily, empty_text_problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

THRESHOLD = 0.5
"""Labels with at least this probability are predicted."""
CUTOFFS = (1, 3, 5)
"""Lengths k of the rankings whose precision is measured."""
NO_LABELS = "none"
"""Generated text for an example without labels."""


class LabelSets(TaskFamily, name="label_sets"):
    """Any number of labels for one text, none included; micro- and macro-F1 as scikit-learn defines them for sets of
    labels, and precision at k.

    An answer maps labels to probabilities, the most probable first: those of at least one half are predicted, and
    precision at k is the share of the k most probable that are correct (Järvelin & Kekäläinen 2002; with one label,
    the top-1 precision of Li et al. 2018 and Lee & Hsiang 2019). A text with fewer than k labels cannot reach 1 there.
    """

    paper: ClassVar[str] = "arXiv:1906.02124"
    columns: ClassVar[dict[str, str]] = {"text": "string", "labels": "list<string>"}
    target: ClassVar[tuple[str, ...]] = ("labels",)
    hub_category: ClassVar[str | None] = "text-classification"
    metrics: ClassVar[tuple[str, ...]] = ("micro_f1", "macro_f1", *(f"precision_at_{k}" for k in CUTOFFS))

    def text(self, row: Row) -> str:
        """The text itself."""
        return str(row["text"])

    def problem(self, row: Row) -> Problem | None:
        """An empty text, an empty label, or a label given twice."""
        if problem := empty_text_problem(row, "text"):
            return problem
        labels = row["labels"] or []
        if any(not (label or "").strip() for label in labels):
            return Problem("labels holds an empty one", "the column 'labels' holds an empty label")
        if twice := next((label for label in labels if labels.count(label) > 1), None):
            return Problem("labels holds one twice", f"the column 'labels' holds {twice!r} twice")
        return None

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Every label, sorted."""
        return sorted({label for row in rows for label in row["labels"]})

    def gold(self, row: Row) -> Answer:
        """The labels in order, each with probability 1."""
        return dict.fromkeys(sorted(row["labels"]), 1.0)

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 3 (C + 1) + cutoffs]: whether each label is correctly predicted, predicted, and expected, the last of
        C + 1 counting those that are not in `labels`; then the correct ones among the k most probable, divided by k."""
        import numpy as np

        index_of = {label: index for index, label in enumerate(labels)}
        size = len(labels) + 1
        counts = np.zeros((len(gold), 3, size))
        ranked = np.zeros((len(gold), len(CUTOFFS)))
        for row, precisions, right, given in zip(counts, ranked, gold, answers, strict=True):
            chosen = predicted_labels(given)
            for position, names in enumerate((set(chosen) & set(right), chosen, right)):
                for name in names:
                    row[position, index_of.get(name, -1)] += 1
            order = ranking(given)
            precisions[:] = [sum(label in right for label in order[:k]) / k for k in CUTOFFS]
        return np.concatenate([counts.reshape(len(gold), -1), ranked], axis=1)

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """F1 over all labels of all examples, its mean over the labels that occur as expected or predicted, and the
        mean precisions at k. Micro-F1 is 1 where no label is expected and none predicted."""
        import numpy as np

        sums = statistics.sum(axis=0)
        right, given, expected = sums[: -len(CUTOFFS)].reshape(3, -1)
        occurring = given + expected
        present = occurring > 0
        of_label = 2 * right[present] / occurring[present]
        precisions = statistics[:, -len(CUTOFFS) :].mean(axis=0)
        return {
            "micro_f1": float(2 * right.sum() / occurring.sum()) if present.any() else 1.0,
            "macro_f1": float(np.mean(of_label)) if present.any() else 1.0,
            **{f"precision_at_{k}": float(value) for k, value in zip(CUTOFFS, precisions, strict=True)},
        }

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`text: … labels:`"""
        return f"text: {row['text']} labels:"

    def answer_text(self, row: Row) -> str:
        """`area; volume`: the labels, sorted, or `none`."""
        return "; ".join(sorted(row["labels"])) or NO_LABELS

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """The written labels in their order, each with probability 1, ignoring case and spaces; others are ignored."""
        known = {" ".join(label.casefold().split()): label for label in labels}
        parts = [" ".join(part.casefold().split()) for part in text.split(";")]
        return {known[part]: 1.0 for part in parts if part in known}


def predicted_labels(answer: Mapping[str, float]) -> list[str]:
    """The labels of an answer with a probability of at least one half."""
    return [label for label, probability in answer.items() if probability >= THRESHOLD]


def ranking(answer: Mapping[str, float]) -> list[str]:
    """The labels of an answer, the most probable first; of equally probable ones, in the order of the answer."""
    return sorted(answer, key=lambda label: -answer[label])
