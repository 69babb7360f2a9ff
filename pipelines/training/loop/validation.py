"""Validation: predictions of a network in training for the held-out examples, and their scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipelines.training.assembly.feature_cache import FeatureCache
from pipelines.training.batches.examples import SortedBatches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.parts.heads import Batch, Head, Signals
    from pipelines.task_families import Task
    from pipelines.task_families.encoding import EncodedExamples

MEAN = "validation/mean"
BATCH = 64
"""Number of examples in a held-out batch."""


class StageValidation:
    """Validation of all labelled lines of a stage: a dataset of their held-out batches, one line after the other."""

    def __init__(self, lines: Mapping[str, Validation]) -> None:
        self.lines = lines
        self._batches = [(name, index) for name, one in lines.items() for index in range(len(one.batches))]

    def __len__(self) -> int:
        return len(self._batches)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        line, number = self._batches[index]
        return self.lines[line].batches[number]

    def locate(self, index: int) -> tuple[str, int]:
        """The line of batch `index`, and the number of the batch in it."""
        return self._batches[index]

    @property
    def monitor(self) -> str:
        """Metric for early stopping and for the choice of the best weights: that of the only line, or their mean."""
        return next(iter(self.lines.values())).monitor if "" in self.lines else MEAN

    def scores(self, networks: Mapping[str, PreTrainedModel]) -> dict[str, float]:
        """The scores of every line, named `validation/<line>/…` where there are several, and the mean of the lines'
        first metrics (as in Wang et al. 2018, GLUE); clears the collected outputs."""
        if "" in self.lines:
            return self.lines[""].scores(networks[""])
        result: dict[str, float] = {}
        firsts: list[float] = []
        for name, line in self.lines.items():
            values = line.scores(networks[name])
            firsts.append(values[line.monitor])
            result |= {key.replace("validation/", f"validation/{name}/", 1): value for key, value in values.items()}
        return {MEAN: round(sum(firsts) / len(firsts), 6), **result}


class Validation:
    """Collects the outputs of one pass over the held-out examples of a line, and scores them."""

    def __init__(self, head: Head, task: Task, encoded: EncodedExamples, tokenizer: PreTrainedTokenizerFast) -> None:
        self.head, self.task, self.encoded, self.tokenizer = head, task, encoded, tokenizer
        self.batches = SortedBatches(encoded, BATCH)
        self.gold = [task.family.gold(row) for row in encoded.examples]
        self._outputs: list[tuple[NDArray[np.int64], Batch, Signals]] = []
        self._losses: list[tuple[float, int]] = []
        self._features: FeatureCache | None = None

    @property
    def monitor(self) -> str:
        """Metric for early stopping and for the choice of the best weights."""
        return f"validation/{self.task.family.metrics[0]}"

    def with_features(self, index: int, batch: Batch, network: PreTrainedModel) -> Batch:
        """Batch number `index` with the states of the frozen networks that `network` reads, if it reads any."""
        import torch

        if self._features is None:
            self._features = FeatureCache(network, self.encoded)
        return self._features.with_states(batch, torch.from_numpy(self.batches.chosen[index]).to(network.device))

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
