"""Size of saved models, whether or not they answer a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.latency import served_bytes
from pipelines.judging.evaluations.saved_weights import parameters, served_weights
from pipelines.judging.figures import RecordedFigure, row_mean

if TYPE_CHECKING:
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import TaskFamily


class SavedSizeEvaluation(Evaluation, name="saved_size"):
    """Bytes of the files that serving a model needs, and of its weights alone, and its number of parameters, of the
    first seed of each stage."""

    judges = "models"

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [
            RecordedFigure(name, name, row_mean, True, one.unit, exact=True, bounds=(0.0, float("inf")))
            for name, one in MEASURED.items()
        ]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        import numpy as np

        sizes = []
        for stage, models in context.subjects.items():
            record: dict[str, Any] = {"stage": stage, "seed": models[0].seed}
            for name, one in MEASURED.items():
                record[name] = one.count(models[0].folder)
                context.keep(name, models[0], np.asarray([[float(record[name])]]))
            sizes.append(record)
        headline = {f"{name}/{one['stage']}": float(one[name]) for one in sizes for name in MEASURED}
        return {"sizes": sizes, "headline": headline}


def _parameters(folder: Path) -> int:
    return parameters(served_weights(folder))


def _weight_bytes(folder: Path) -> int:
    return served_weights(folder).stat().st_size


class CountedSize(NamedTuple):
    """A figure that is counted in the folder of a saved model."""

    count: Callable[[Path], int]
    unit: str


MEASURED = {
    "bytes": CountedSize(served_bytes, "bytes"),
    "weight_bytes": CountedSize(_weight_bytes, "bytes"),  # without the vocabulary, as papers give sizes
    "parameters": CountedSize(_parameters, "parameters"),
}
"""RecordedFigure → how it is counted."""
