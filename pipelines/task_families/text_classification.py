"""Text classification: one label for one text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, Problem, Row, TaskFamily, empty_text_problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class TextClassification(TaskFamily, name="text_classification"):
    """One label for one text; macro-F1, accuracy, Matthews correlation and micro-F1 as scikit-learn defines them."""

    paper: ClassVar[str] = "Matthews 1975; Gorodkin 2004"
    columns: ClassVar[dict[str, str]] = {"text": "string", "label": "string"}
    target: ClassVar[tuple[str, ...]] = ("label",)
    hub_category: ClassVar[str | None] = "text-classification"
    metrics: ClassVar[tuple[str, ...]] = ("macro_f1", "accuracy", "mcc", "micro_f1")

    is_single_text: ClassVar[bool] = True

    def text(self, row: Row) -> str:
        """The text itself."""
        return str(row["text"])

    def problem(self, row: Row) -> Problem | None:
        """An empty text or an empty label."""
        return empty_text_problem(row, *self.columns)

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Every label, sorted."""
        return sorted({row["label"] for row in rows})

    def gold(self, row: Row) -> Answer:
        """The label."""
        return row["label"]

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 2]: indices of the correct and of the given label; −2 and −1 for labels that are not in `labels`."""
        import numpy as np

        index_of = {label: index for index, label in enumerate(labels)}
        pairs = [(index_of.get(right, -2), index_of.get(given, -1)) for right, given in zip(gold, answers, strict=True)]
        return np.asarray(pairs, dtype=np.float64).reshape(-1, 2)

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Macro-F1 over the labels that occur as correct or given, accuracy, multi-class Matthews correlation (0 where
        it is undefined), and micro-F1. An answer that is not a label is wrong but not a class of its own; without such
        answers, micro-F1 equals accuracy."""
        import numpy as np

        right, given = statistics.astype(np.int64).T + 2
        size = int(max(right.max(), given.max())) + 1
        hits = np.bincount(right[right == given], minlength=size)
        of_right, of_given = np.bincount(right, minlength=size), np.bincount(given, minlength=size)
        occurring = (of_right + of_given)[2:]
        present = occurring > 0
        f1 = 2 * hits[2:][present] / occurring[present]
        items = float(len(right))
        shared = hits.sum() * items - of_right @ of_given
        spread = (items**2 - of_right @ of_right) * (items**2 - of_given @ of_given)
        return {
            "macro_f1": float(f1.mean()) if len(f1) else 0.0,
            "accuracy": float(hits.sum() / items),
            "mcc": float(shared / np.sqrt(spread)) if spread > 0 else 0.0,
            "micro_f1": float(2 * hits[2:].sum() / occurring.sum()) if occurring.any() else 0.0,
        }

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`text: … label:`"""
        return f"text: {row['text']} label:"

    def answer_text(self, row: Row) -> str:
        """The label."""
        return str(row["label"])

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """The written label, ignoring case and spaces; else the text, which is not a label."""
        known = {" ".join(label.casefold().split()): label for label in labels}
        return known.get(" ".join(text.casefold().split()), text)
