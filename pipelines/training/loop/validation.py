"""Validation: predictions of a network in training for the held-out examples, and their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.training.batches.examples import SortedBatches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.parts.heads import Batch, Head, Signals
    from pipelines.task_families import Task
    from pipelines.task_families.encoding import EncodedExamples

BATCH = 64
"""Number of examples in a held-out batch."""


class Validation:
    """Collects the outputs of one pass over the held-out examples, and scores them."""

    def __init__(self, head: Head, task: Task, encoded: EncodedExamples, tokenizer: PreTrainedTokenizerFast) -> None:
        self.head, self.task, self.encoded, self.tokenizer = head, task, encoded, tokenizer
        self.batches = SortedBatches(encoded, BATCH)
        self.gold = [task.family.gold(row) for row in encoded.examples]
        self._outputs: list[tuple[NDArray[np.int64], Batch, Signals]] = []
        self._losses: list[tuple[float, int]] = []

    @property
    def monitor(self) -> str:
        """Metric for early stopping and for the choice of the best weights."""
        return f"validation/{self.task.family.metrics[0]}"

    def add_batch(self, index: int, batch: Batch, signals: Signals, loss: float | None) -> None:
        """Keep the outputs and the loss of batch number `index`."""
        chosen = self.batches.chosen[index]
        kept = {name: signals[name] for name in self.head.answers_from}
        self._outputs.append((chosen, batch, kept))
        if loss is not None:
            self._losses.append((loss, len(chosen)))

    def scores(self, network: PreTrainedModel) -> dict[str, float]:
        """The family's metrics over all examples, and the mean loss; clears the collected outputs."""
        family = self.task.family
        answers = self.head.answer(network, self.encoded, self._outputs, self.task, self.tokenizer)
        values = family.scores(family.statistics(self.gold, answers, self.task.labels))
        result = {f"validation/{name}": round(float(value), 6) for name, value in values.items()}
        if self._losses:
            items = sum(size for _, size in self._losses)
            result["validation/loss"] = round(sum(loss * size for loss, size in self._losses) / items, 6)
        self._outputs, self._losses = [], []
        return result
