"""Pair regression: a number for two texts."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from pipelines.task_families import Answer, Problem, Row, TaskFamily, empty_text_problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


class PairRegression(TaskFamily, name="pair_regression"):
    """A number for two texts, as in semantic textual similarity; Spearman's and Pearson's correlation."""

    paper: ClassVar[str] = "arXiv:1708.00055"
    columns: ClassVar[dict[str, str]] = {"text_a": "string", "text_b": "string", "label": "double"}
    target: ClassVar[tuple[str, ...]] = ("label",)
    hub_category: ClassVar[str | None] = "sentence-similarity"
    metrics: ClassVar[tuple[str, ...]] = ("spearman", "pearson")

    def text(self, row: Row) -> str:
        """The two texts, one after the other."""
        return f"{row['text_a']}\n{row['text_b']}"

    def problem(self, row: Row) -> Problem | None:
        """An empty text, or a label that is not a finite number."""
        if problem := empty_text_problem(row, "text_a", "text_b"):
            return problem
        if row["label"] is None or not math.isfinite(row["label"]):
            message = f"the column 'label' holds {row['label']!r}, expected a finite number"
            return Problem("label is not a finite number", message)
        return None

    def labels(self, rows: Sequence[Row]) -> list[str]:
        """Empty: any number may be an answer."""
        return []

    def gold(self, row: Row) -> Answer:
        """The number."""
        return float(row["label"])

    def statistics(
        self, gold: Sequence[Answer], answers: Sequence[Answer], labels: Sequence[str]
    ) -> NDArray[np.float64]:
        """[N, 2]: correct and given number; a missing one (NaN) counts as the end of the scale farther from the correct
        one."""
        import numpy as np

        right, given = np.asarray(gold, dtype=np.float64), np.asarray(answers, dtype=np.float64)
        if len(right):
            low, high = right.min(), right.max()
            given = np.where(np.isfinite(given), given, np.where(right - low > high - right, low, high))
        return np.stack([right, given], axis=1)

    def scores(self, statistics: NDArray[np.float64]) -> dict[str, float]:
        """Both correlations; 0 if one side is constant."""
        import numpy as np
        from scipy.stats import rankdata

        return {
            "spearman": _correlation(np.asarray(rankdata(statistics, axis=0))),
            "pearson": _correlation(statistics),
        }

    def source(self, row: Row, labels: Sequence[str]) -> str:
        """`first: … second: … similarity:`"""
        return f"first: {row['text_a']} second: {row['text_b']} similarity:"

    def answer_text(self, row: Row) -> str:
        """The number rounded to 0.2, so that the set of answers is small (Raffel et al. 2019, arXiv:1910.10683,
        §2.4)."""
        return f"{round(float(row['label']) * 5) / 5 + 0.0:.1f}"

    def read_answer(self, text: str, row: Row, labels: Sequence[str]) -> Answer:
        """The written number; NaN for any other text."""
        text = text.strip()
        return float(text) if _NUMBER.fullmatch(text) else math.nan


def _correlation(columns: NDArray[np.float64]) -> float:
    """Pearson's correlation of the columns of an [N, 2] array; 0 if one of them is constant."""
    import numpy as np

    if len(columns) < 2 or np.any(columns.min(axis=0) == columns.max(axis=0)):
        return 0.0
    first, second = (columns - columns.mean(axis=0)).T
    return float(np.clip(first @ second / np.sqrt((first @ first) * (second @ second)), -1, 1))
