"""Memory that the weights of opened models take, whether or not they answer a task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.latency import served_bytes
from pipelines.judging.figures import RecordedFigure, row_mean
from pipelines.models.opening import open_lines
from pipelines.networks.folder import ONNX

if TYPE_CHECKING:
    from torch.nn import Module

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import TaskFamily

MEMORY_BYTES = "memory_bytes"


class MemorySizeEvaluation(Evaluation, name="memory_size"):
    """Bytes in memory of the weights and buffers of a model that is opened as `cursus predict` opens it, beside the
    bytes on disk of all files that serving it needs; of the first seed of each stage.

    What a computation needs for a moment is not counted. A model that is served from a graph is left out: its runtime
    lays out memory as it likes.
    """

    judges = "models"

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [
            RecordedFigure(MEMORY_BYTES, MEMORY_BYTES, row_mean, True, "bytes", exact=True, bounds=(0.0, float("inf")))
        ]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        import numpy as np

        sizes: list[dict[str, Any]] = []
        for stage, models in context.subjects.items():
            folder = models[0].folder
            if (folder / ONNX).is_file():
                continue
            taken = memory_bytes(folder)
            context.keep(MEMORY_BYTES, models[0], np.asarray([[float(taken)]]))
            sizes.append(
                {"stage": stage, "seed": models[0].seed, MEMORY_BYTES: taken, "disk_bytes": served_bytes(folder)}
            )
        headline = {f"{MEMORY_BYTES}/{one['stage']}": float(one[MEMORY_BYTES]) for one in sizes}
        return {"sizes": sizes, "headline": headline}


def memory_bytes(folder: Path) -> int:
    """Bytes of the weights and buffers of the model in `folder`, each counted once, however many modules share it."""
    return _bytes_of(open_lines(folder, "cpu").network)


def _bytes_of(network: Module) -> int:
    storages = {}
    for tensor in (*network.parameters(), *network.buffers()):
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())
