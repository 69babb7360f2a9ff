"""Where a model is good and where it is not: scores by class, by length, by source, by how much it had never read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import PositiveInt

from pipelines.judging.certainty.resampling import interval
from pipelines.judging.evaluations import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.stage import EvaluationContext
    from pipelines.task_families import Answer, Row

RESAMPLES = 400
SMALLEST = 10
"""Examples below which a group is too small to score."""
MOST_SOURCES = 12
_RUN = re.compile(r"[\u3400-\u9fff]+|[^\W\u3400-\u9fff]+")


@dataclass(frozen=True)
class Slice:
    """Some of the test examples."""

    name: str
    rows: NDArray[np.int64]


class SlicesEvaluation(Evaluation, name="slices"):
    """The family's score over parts of the test table, with intervals, and precision, recall and F1 of every class.

    Parts: quartiles of length in characters; quartiles of the share of words that no training example holds (of pairs of
    neighbouring characters, in Chinese); the sources that the table names, where they are few. Groups of fewer than ten
    examples are counted and not scored. Classes are scored one against the rest, as scikit-learn does, where an answer is one
    of a closed set; pooled over seeds.
    """

    metric: str | None = None
    """The score of every part; None for the family's first."""
    classes: PositiveInt = 30
    """Classes shown, the most frequent ones."""

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a metric that the family does not have."""
        family = evaluated.family
        metric = self.chosen_metric(self.metric, family)
        score = family.scorer(metric)
        texts = [family.text(row) for row in evaluated.rows]
        parts = {
            "length": ("characters", quartile_slices([len(text) for text in texts])),
            "unknown_words": (
                "percent",
                quartile_slices([100 * share for share in unknown_word_shares(texts, _known(evaluated))]),
            ),
            "source": ("", source_slices(evaluated.rows)),
        }
        return {
            "metric": metric,
            "examples": len(texts),
            "resamples": RESAMPLES,
            "slices": [
                {"by": by, "unit": unit, "groups": [_scored(evaluated, group, score) for group in groups]}
                for by, (unit, groups) in parts.items()
                if len(groups) > 1
            ],
            "classes": self._classes(evaluated),
        }

    def _classes(self, evaluated: EvaluationContext) -> list[dict[str, Any]]:
        labels = set(evaluated.labels)
        if not labels or not all(isinstance(right, str) and right in labels for right in evaluated.gold):
            return []
        support = Counter(evaluated.gold)
        shown = sorted(support, key=lambda label: (-support[label], label))[: self.classes]
        said = {
            stage: [evaluated.answers(subject) for subject in models] for stage, models in evaluated.answering.items()
        }
        return [
            {
                "label": label,
                "examples": support[label],
                "stages": {stage: class_scores(label, evaluated.gold, answers) for stage, answers in said.items()},
            }
            for label in shown
        ]


def class_scores(label: str, gold: Sequence[Answer], models: Sequence[Sequence[Answer]]) -> dict[str, float]:
    """Precision, recall and F1 of `label` against the rest over the answers of all `models`; 0 where nothing is to divide by."""
    hits = sum(right == given == label for answers in models for right, given in zip(gold, answers, strict=True))
    given = sum(answer == label for answers in models for answer in answers)
    asked = len(models) * sum(right == label for right in gold)
    return {
        "precision": hits / given if given else 0.0,
        "recall": hits / asked if asked else 0.0,
        "f1": 2 * hits / (given + asked) if given + asked else 0.0,
    }


def quartile_slices(values: Sequence[float]) -> list[Slice]:
    """The examples in up to four groups of ascending value, named by the lowest and the highest; equal values stay together."""
    import numpy as np

    found = np.asarray(values, dtype=np.float64)
    edges = np.unique(np.quantile(found, [0.25, 0.5, 0.75], method="lower"))
    number = np.searchsorted(edges, found, side="left")
    groups = [np.flatnonzero(number == one) for one in range(len(edges) + 1)]
    return [Slice(_span(found[rows].min(), found[rows].max()), rows) for rows in groups if len(rows)]


def _span(low: float, high: float) -> str:
    first, last = f"{low:,.0f}", f"{high:,.0f}"
    return first if first == last else f"{first}–{last}"


def source_slices(rows: Sequence[Row]) -> list[Slice]:
    """The examples by the file they stand in; none where the table names no source, or too many to lay side by side."""
    import numpy as np

    column = "origin" if "origin" in rows[0] else "source"
    told = rows[0].get(column)
    if not isinstance(told, str):
        return []
    # a source is a file and the place in it
    names = [re.sub(r"[:@]\d+$", "", str(row[column])) for row in rows]
    known = sorted(set(names))
    if len(known) > MOST_SOURCES:
        return []
    return [Slice(name, np.flatnonzero(np.asarray(names) == name)) for name in known]


def unknown_word_shares(texts: Sequence[str], known: frozenset[str]) -> list[float]:
    """For each text, the share of its words that are not in `known`; 0 for one without words."""
    shares = []
    for text in texts:
        words = word_units(text)
        shares.append(sum(word not in known for word in words) / len(words) if words else 0.0)
    return shares


def word_units(text: str) -> list[str]:
    """The words of `text` without case; of a run of Han characters, every two that are neighbours."""
    found = []
    for word in _RUN.findall(text.lower()):
        han = len(word) > 1 and "\u3400" <= word[0] <= "\u9fff"
        found += [word[at : at + 2] for at in range(len(word) - 1)] if han else [word]
    return found


def _known(evaluated: EvaluationContext) -> frozenset[str]:
    return frozenset(word for row in evaluated.examples("train") for word in word_units(evaluated.family.text(row)))


def _scored(evaluated: EvaluationContext, group: Slice, score: Score) -> dict[str, Any]:
    """A group's name and size, and its score under every stage; none where it is too small."""
    scores = {}
    if len(group.rows) >= SMALLEST:
        for stage, models in evaluated.answering.items():
            statistics = [evaluated.statistics(subject)[group.rows] for subject in models]
            scores[stage] = interval(score, statistics, evaluated.seed, RESAMPLES).record()
    return {"name": group.name, "examples": len(group.rows), "stages": scores}
