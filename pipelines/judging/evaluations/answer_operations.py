"""Operations of an answer: what a model computes, whatever the machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from pipelines.judging.evaluations import Evaluation
from pipelines.judging.figures import RecordedFigure, row_mean
from pipelines.networks.folder import ONNX

if TYPE_CHECKING:
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import Row, TaskFamily

OPERATIONS = "operations"


class AnswerOperationsEvaluation(Evaluation, name="answer_operations"):
    """Multiplications and additions of matrix products, counted while the network answers test examples one by one, and
    averaged; of the first seed of each stage, with the ratio to the first stage.

    A model that is served from a graph is left out: torch does not compute it.
    """

    examples: int = Field(16, ge=1, le=100_000)
    """Test examples that operations are counted for."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [
            RecordedFigure(OPERATIONS, OPERATIONS, row_mean, True, OPERATIONS, exact=True, bounds=(0.0, float("inf")))
        ]

    def tiny(self) -> Self:
        return self.model_copy(update={"examples": 2})

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        import numpy as np

        counted: list[dict[str, Any]] = []
        for stage, models in context.task_models.items():
            if (models[0].folder / ONNX).is_file():
                continue
            operations = count_operations(models[0].folder, context.rows[: self.examples])
            context.keep(OPERATIONS, models[0], np.asarray([[float(operations)]]))
            first = counted[0][OPERATIONS] if counted else operations
            times = round(operations / first, 6)
            counted.append({"stage": stage, "seed": models[0].seed, OPERATIONS: operations, "times": times})
        headline = {f"{OPERATIONS}/{one['stage']}": float(one[OPERATIONS]) for one in counted}
        return {"counted": counted, "examples": min(self.examples, len(context.rows)), "headline": headline}


def count_operations(folder: Path, rows: Sequence[Row]) -> int:
    """Mean number of multiplications and additions of matrix products in an answer to one of `rows`."""
    from torch.utils.flop_counter import FlopCounterMode

    from pipelines.serving.answering.answerer import Answerer

    answerer = Answerer(folder)
    with FlopCounterMode(display=False) as counter:
        for row in rows:
            answerer.answer([row])
    return int(counter.get_total_flops() / len(rows))
