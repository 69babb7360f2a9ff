"""Multi-label classification of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from pydantic import Field as Option

from pipelines.components import listed
from pipelines.errors import DataError
from pipelines.parts.heads import Batch, Signals
from pipelines.parts.heads.layer_signals import LAYERS
from pipelines.parts.heads.pooled_text import PooledTextHead, encode_texts
from pipelines.parts.heads.token_rows import column
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.label_sets import CUTOFFS, THRESHOLD
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.encoding import EncodedExamples

LABEL_SETS = Field.of_rows("label_sets")
"""float32 [B, C]: 1 for each label of a text, 0 for the others."""
LABEL_SET_LOGITS = Signal.of_head("label_set_logits")
"""[B, C]: logit that each label belongs to a text."""
DIGITS = 6
"""Decimal places of the probabilities in an answer."""


class LabelSetsHead(PooledTextHead, name="label_sets"):
    """An independent probability of each label, the sigmoid of a linear function of the pooled vector of a text.

    An answer holds the labels with a probability of one half or more, and the most probable ones up to `ranked`.
    """

    paper = "arXiv:1906.02124"
    provides = LAYERS | {LABEL_SET_LOGITS, Signal.POOLED, Signal.NEXT_LOGITS}
    reads = frozenset({"label_sets"})
    labels = frozenset({LABEL_SETS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({LABEL_SET_LOGITS})

    ranked: int = Option(max(CUTOFFS), ge=max(CUTOFFS))
    """Number of labels in an answer, if no more of them are predicted: what precision at k reads."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        return self._network(config, task.labels if task else ())

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs, signals = self._read(network, batch, requested)
        return signals | {LABEL_SET_LOGITS: outputs.logits}

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        encoded = encode_texts(examples, task, tokenizer, length, both_orders=False)
        if answers:
            encoded.values[LABEL_SETS] = _indicators(examples, task)
        return encoded

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        answers: list[Answer] = [None] * len(encoded)
        for chosen, _, signals in outputs:
            probabilities = cast("Tensor", signals[LABEL_SET_LOGITS]).double().sigmoid().cpu().numpy()
            for item, row in zip(chosen, probabilities, strict=True):
                answers[item] = self._most_probable(row, task.labels)
        return answers

    def _most_probable(self, probabilities: NDArray[np.float64], labels: Sequence[str]) -> dict[str, float]:
        """Label → probability, the most probable first; of equally probable ones, in the order of `labels`."""
        order = np.argsort(-probabilities, kind="stable")
        size = max(self.ranked, int((probabilities >= THRESHOLD).sum()))
        # rounding must not lift a label over the threshold
        return {
            labels[index]: float(np.floor(probabilities[index] * 10**DIGITS) / 10**DIGITS) for index in order[:size]
        }


def _indicators(examples: Sequence[Row], task: Task) -> NDArray[np.float32]:
    """float32 [examples, C]. Raises DataError for a label that no training example has."""
    indices = {label: index for index, label in enumerate(task.labels)}
    result = np.zeros((len(examples), len(indices)), dtype=np.float32)
    for at, labels in enumerate(column(examples, "labels")):
        if isinstance(labels, str) or labels is None:
            raise DataError(f"example {number_of(examples, at)}: its labels are {labels!r}, expected a list of labels")
        for label in labels:
            if label not in indices:
                raise DataError(
                    f"example {number_of(examples, at)}: no training example has its label {label!r}; known: "
                    f"{listed(indices)}"
                )
            result[at, indices[label]] = 1
    return result
