"""Scores by slice of the test table: by class, length, source, and share of words that are not in the training
table."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from pipelines.judging.certainty.resampling import interval
from pipelines.judging.evaluations import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import Answer, Row

RESAMPLES = 400
SMALLEST = 10
"""Slices with fewer examples are counted but not scored."""
MAX_SOURCES = 12
"""Tables with more sources are not sliced by source."""
_WORD = re.compile(r"[\u3400-\u9fff]+|[^\W\u3400-\u9fff]+")


@dataclass(frozen=True)
class Slice:
    """A named subset of the test examples."""

    name: str
    rows: NDArray[np.int64]
    """Indices of its examples."""


class SlicesEvaluation(Evaluation, name="slices"):
    """The family's score over slices of the test table, with intervals, and precision, recall and F1 of every class.

    Slices: quartiles of length in characters; quartiles of the share of words that occur in no training example (in
    Chinese, of pairs of adjacent characters); the sources that the table names, if they are few. Slices of fewer than
    ten examples are counted but not scored. Classes are scored one against the rest, as in scikit-learn, if answers are
    from a closed set; answers are pooled over seeds.
    """

    metric: str | None = None
    """Metric of every slice; None for the family's first."""
    classes: int = Field(30, ge=1, le=100_000)
    """Classes shown, most frequent first."""
    resamples: int = Field(RESAMPLES, ge=20, le=1_000_000)
    """Resampled tables of every interval."""

    def tiny(self) -> Self:
        return self.model_copy(update={"resamples": 20})

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a metric that the family does not have."""
        family = context.family
        metric = self.chosen_metric(self.metric, family)
        score = family.scorer(metric)
        known = _known(context)
        lengths, unknown = [], []
        for row in context.rows:
            text = family.text(row)
            lengths.append(len(text))
            unknown.append(100 * unknown_word_share(text, known))
        parts = {
            "length": ("characters", quartile_slices(lengths)),
            "unknown_words": ("percent", quartile_slices(unknown)),
            "source": ("", source_slices(context.rows)),
        }
        return {
            "metric": metric,
            "examples": len(lengths),
            "resamples": self.resamples,
            "slices": [
                {"by": by, "unit": unit, "groups": [self._scored(context, group, score) for group in groups]}
                for by, (unit, groups) in parts.items()
                if len(groups) > 1
            ],
            "classes": self._classes(context),
        }

    def _scored(self, context: EvaluationContext, group: Slice, score: Score) -> dict[str, Any]:
        """Name and size of a slice, and its score under every stage; no scores if it is too small."""
        scores = {}
        if len(group.rows) >= SMALLEST:
            for stage, models in context.task_models.items():
                statistics = [context.statistics(subject)[group.rows] for subject in models]
                scores[stage] = interval(score, statistics, context.seed, self.resamples).record()
        return {"name": group.name, "examples": len(group.rows), "stages": scores}

    def _classes(self, context: EvaluationContext) -> list[dict[str, Any]]:
        labels = set(context.labels)
        if not labels or not all(isinstance(right, str) and right in labels for right in context.gold):
            return []
        support = Counter(context.gold)
        shown = sorted(support, key=lambda label: (-support[label], label))[: self.classes]
        answers_by_stage = {
            stage: [context.answers(subject) for subject in models] for stage, models in context.task_models.items()
        }
        return [
            {
                "label": label,
                "examples": support[label],
                "stages": {
                    stage: class_scores(label, context.gold, answers) for stage, answers in answers_by_stage.items()
                },
            }
            for label in shown
        ]


def class_scores(label: str, gold: Sequence[Answer], models: Sequence[Sequence[Answer]]) -> dict[str, float]:
    """Precision, recall and F1 of `label` against the rest over the answers of all `models`; 0 where the denominator is
    0."""
    hits = sum(right == given == label for answers in models for right, given in zip(gold, answers, strict=True))
    given = sum(answer == label for answers in models for answer in answers)
    support = len(models) * sum(right == label for right in gold)
    return {
        "precision": hits / given if given else 0.0,
        "recall": hits / support if support else 0.0,
        "f1": 2 * hits / (given + support) if given + support else 0.0,
    }


def quartile_slices(values: Sequence[float]) -> list[Slice]:
    """Up to four slices of ascending value, named by lowest and highest value; equal values are in the same slice."""
    import numpy as np

    array = np.asarray(values, dtype=np.float64)
    edges = np.unique(np.quantile(array, [0.25, 0.5, 0.75], method="lower"))
    quartile = np.searchsorted(edges, array, side="left")
    groups = [np.flatnonzero(quartile == one) for one in range(len(edges) + 1)]
    return [Slice(_span(array[rows].min(), array[rows].max()), rows) for rows in groups if len(rows)]


def _span(low: float, high: float) -> str:
    first, last = f"{low:,.0f}", f"{high:,.0f}"
    return first if first == last else f"{first}–{last}"


def source_slices(rows: Sequence[Row]) -> list[Slice]:
    """Slices by source file; none if the table has no source column, or more than `MAX_SOURCES` sources."""
    import numpy as np

    column = "origin" if "origin" in rows[0] else "source"
    if not isinstance(rows[0].get(column), str):
        return []
    # a source is a file and a position in it
    names = [sys.intern(re.sub(r"[:@]\d+$", "", str(row[column]))) for row in rows]
    known = sorted(set(names))
    if len(known) > MAX_SOURCES:
        return []
    return [Slice(name, np.flatnonzero(np.asarray(names) == name)) for name in known]


def unknown_word_share(text: str, known: frozenset[str]) -> float:
    """The share of the words of a text that are not in `known`; 0 without words."""
    words = word_units(text)
    return sum(word not in known for word in words) / len(words) if words else 0.0


def word_units(text: str) -> list[str]:
    """Words of `text` in lower case; of a run of Han characters, every pair of adjacent characters."""
    units = []
    for word in _WORD.findall(text.lower()):
        han = len(word) > 1 and "\u3400" <= word[0] <= "\u9fff"
        units += [word[first : first + 2] for first in range(len(word) - 1)] if han else [word]
    return units


def _known(context: EvaluationContext) -> frozenset[str]:
    return frozenset(word for row in context.examples("train") for word in word_units(context.family.text(row)))
