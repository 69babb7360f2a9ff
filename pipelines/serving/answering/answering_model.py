"""A finished model of any task family behind one call: examples in, answers out, with probabilities where it has them.

AnsweringModel(folder).predict([{"text": "a text"}])      [Prediction("linalg", {"cluster": 0.01, "linalg": 0.93, …})]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.serving.answering.answerer import Answerer
from pipelines.serving.answering.examples import as_json, family_of, input_columns
from pipelines.serving.answering.inference import has_class_probabilities, open_predictor
from pipelines.task_families import Answer, Row, TaskFamily


@dataclass(frozen=True)
class Prediction:
    """The answer to one example."""

    answer: Answer
    """A label; or tags, a number, a span, a text: what the task's family answers."""
    probabilities: Mapping[str, float] | None = None
    """Label → probability, for models that classify a text; they sum to one."""

    def as_json(self) -> dict[str, Any]:
        """The prediction as `cursus predict --json` and MLflow's server write it."""
        if self.probabilities is None:
            return {"answer": as_json(self.answer)}
        rounded = {label: round(value, 6) for label, value in self.probabilities.items()}
        return {"label": self.answer, "probabilities": rounded}


class AnsweringModel:
    """The model of one task in `folder`, opened once, computed on `threads` CPU threads.

    `folder` comes from the store or has been checked. Raises DataError if it answers no task, or several.
    """

    def __init__(self, folder: Path, threads: int = 1) -> None:
        self.family: TaskFamily = family_of(folder)
        classifies = self.family.is_single_text and has_class_probabilities(folder)
        self._predictor = open_predictor(folder, threads) if classifies else None
        self._answerer = None if classifies else Answerer(folder, threads)

    @property
    def labels(self) -> tuple[str, ...]:
        """The closed set of answers or tags; empty when answers are free text, numbers or spans."""
        if self._predictor is not None:
            return tuple(self._predictor.labels)
        assert self._answerer is not None
        return tuple(self._answerer.task.labels)

    @property
    def columns(self) -> dict[str, str]:
        """Column of an example → its type."""
        return input_columns(self.family)

    def predict(self, rows: Sequence[Row]) -> list[Prediction]:
        """The prediction for each of `rows`, in their order. Raises DataError for one that the model cannot read."""
        if self._predictor is None:
            assert self._answerer is not None
            return [Prediction(answer) for answer in self._answerer.answer(rows)]
        labels = self._predictor.labels
        probabilities = self._predictor.predict([str(row["text"]) for row in rows])
        return [
            Prediction(labels[int(row.argmax())], {label: float(p) for label, p in zip(labels, row, strict=True)})
            for row in probabilities
        ]
