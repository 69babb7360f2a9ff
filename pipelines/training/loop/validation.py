"""What a network in training answers to the held-out examples, and how good the answers are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.training.batches.examples import InOrder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.parts.heads import Batch, Head, Signals
    from pipelines.task_families import Task
    from pipelines.task_families.encoding import Encoded

BATCH = 64
"""Examples of a held-out batch."""


class Validation:
    """One pass over the held-out examples at a time."""

    def __init__(self, head: Head, task: Task, encoded: Encoded, tokenizer: PreTrainedTokenizerFast) -> None:
        self.head, self.task, self.encoded, self.tokenizer = head, task, encoded, tokenizer
        self.batches = InOrder(encoded, BATCH)
        self.gold = [task.family.gold(row) for row in encoded.examples]
        self._heard: list[tuple[NDArray[np.int64], Batch, Signals]] = []
        self._losses: list[tuple[float, int]] = []

    @property
    def monitor(self) -> str:
        """What early stopping and the choice of the best weights look at."""
        return f"validation/{self.task.family.metrics[0]}"

    def hear(self, index: int, batch: Batch, signals: Signals, loss: float | None) -> None:
        """Keep what was said of batch number `index`."""
        chosen = self.batches.chosen[index]
        kept = {name: signals[name] for name in self.head.answers_from}
        self._heard.append((chosen, batch, kept))
        if loss is not None:
            self._losses.append((loss, len(chosen)))

    def scores(self, network: PreTrainedModel) -> dict[str, float]:
        """The family's metrics over all examples, and the mean loss; forgets what was heard."""
        family = self.task.family
        answers = self.head.answer(network, self.encoded, self._heard, self.task, self.tokenizer)
        values = family.scores(family.statistics(self.gold, answers, self.task.labels))
        result = {f"validation/{name}": round(float(value), 6) for name, value in values.items()}
        if self._losses:
            items = sum(size for _, size in self._losses)
            result["validation/loss"] = round(sum(loss * size for loss, size in self._losses) / items, 6)
        self._heard, self._losses = [], []
        return result
