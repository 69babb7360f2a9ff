"""Answers of a finished model to examples of its task, from the folder of any stage that answers a task.

Answerer(folder).answer([{"tokens": ["Ada", "wrote", "it"]}])        # [["B-PER", "O", "O"]]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from pipelines.errors import DataError, RecipeError
from pipelines.models.answering import BATCH, BLOCK, CHARACTERS, answered, outputs_of
from pipelines.models.features import encode_examples
from pipelines.models.opening import ModelRecord, OpenedModel, open_config, open_lines, open_tokenizer
from pipelines.models.reading import complete_batches
from pipelines.models.text_network import ServedNetwork
from pipelines.networks.folder import ONNX
from pipelines.serving.answering.inference import open_compute, open_predictor
from pipelines.serving.exported import EXPORT
from pipelines.task_families.excerpt import excerpts
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    from pipelines.serving.runtimes import Compute
    from pipelines.task_families import Answer, Row, Task


class Answerer:
    """A finished model that answers examples of its task family, on torch or on the runtime that the folder was
    exported for.

    With `compute`, that function computes the network instead; with `opened`, the folder's networks were opened before:
    the answerers of several tasks then share one backbone. `task` chooses one of several. Raises DataError if the
    folder is not a model that answers a task, or answers several and none is chosen.
    """

    def __init__(
        self,
        folder: Path,
        threads: int = 1,
        compute: Compute | None = None,
        *,
        task: str | None = None,
        opened: OpenedModel | None = None,
    ) -> None:
        self._folder, self._threads = folder, threads
        if compute is None and (folder / EXPORT).is_file():
            compute = open_compute(folder, threads)
        self._served = open_predictor(folder, threads) if compute is None and (folder / ONNX).is_file() else None
        if self._served is None:
            try:
                if compute is not None:
                    self._opened = _with_compute(compute, folder)
                else:
                    opened = opened or open_lines(folder, "cpu")
                    self._opened = opened.line(opened.record.line_for(task, folder))
            except RecipeError as error:
                raise DataError(str(error)) from None
            answered = self._opened.record.task
            if answered is None:
                raise DataError(
                    f"{folder}: trained on plain text, it answers no task; name a finetune or compress stage"
                )
            self.task: Task = answered

    def answer(self, rows: Sequence[Row]) -> list[Answer]:
        """The answer to each of `rows`, in order. Raises DataError with the row if the model cannot read it."""
        if not rows:
            return []
        if self._served is not None:
            # text classifiers are the only models that are served without torch
            chosen = self._served.predict([str(row["text"]) for row in rows], BATCH).argmax(axis=1)
            return [self._served.labels[index] for index in chosen]
        import torch

        torch.set_num_threads(self._threads)
        opened, record = self._opened, self._opened.record
        length = int(opened.tokenizer.model_max_length)
        return [
            answer
            for block in excerpts(rows, BLOCK, CHARACTERS)
            for answer in answered(
                opened.network, record.head, block, self.task, opened.tokenizer, length, opened.features, record
            )
        ]

    def class_logits(self, rows: Sequence[Row], batch_size: int = BATCH) -> NDArray[np.float32]:
        """float32 [N, C]: the logits of the classes `task.labels` for `rows`, by a classifier that torch computes."""
        import torch

        torch.set_num_threads(self._threads)
        opened, record, requested = self._opened, self._opened.record, frozenset({Signal.LOGITS})
        length = int(opened.tokenizer.model_max_length)
        result = np.zeros((len(rows), len(self.task.labels)), dtype=np.float32)
        for block in excerpts(rows, BLOCK, CHARACTERS):
            encoded = encode_examples(
                record.head, block, self.task, opened.tokenizer, length, opened.features, answers=False
            )
            complete_batches(encoded, record, opened.tokenizer, length)
            with torch.inference_mode():
                for chosen, _, signals in outputs_of(opened.network, record.head, encoded, requested, batch_size):
                    result[block.first + chosen] = signals[Signal.LOGITS].float().numpy()
        return result


def _with_compute(compute: Compute, folder: Path) -> OpenedModel:
    """The model in `folder`, its network computed by `compute`."""
    record = ModelRecord.read(open_config(folder))
    if record is None:
        raise DataError(f"{folder}: its config.json names no head that it was trained with, so it answers no task")
    # heads of exported models only call the network
    return OpenedModel(record, cast("PreTrainedModel", ServedNetwork(compute)), open_tokenizer(folder))
