"""Regression: a score for a text pair."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field as Option

from pipelines.errors import DataError
from pipelines.parts.heads import Batch, Signals
from pipelines.parts.heads.layer_signals import LAYERS
from pipelines.parts.heads.pooled_text import PooledTextHead, encode_texts
from pipelines.parts.heads.token_rows import column
from pipelines.task_families.excerpt import number_of
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.encoding import EncodedExamples


class RegressionHead(PooledTextHead, name="regression"):
    """One score for a pair encoded as one row: `middle` + `scale` · a linear function of its pooled vector.

    Scores are on the dataset's own scale. With the mean of the training scores as `middle` and their standard deviation
    as `scale` a new head starts at that mean, and few steps suffice.
    """

    paper = "arXiv:1810.04805"
    provides = LAYERS | {Signal.SCORE, Signal.POOLED, Signal.NEXT_LOGITS}
    reads = frozenset({"pair_regression"})
    labels = frozenset({Field.SCORES})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.SCORE})

    both_orders: bool = False
    """Whether a pair is read in both orders and their vectors added (Radford et al. 2018, §3.3, similarity)."""
    middle: float = 0.0
    """Score that a new head predicts for every pair, in the dataset's units."""
    scale: float = Option(1.0, gt=0)
    """Typical deviation from `middle`, in the dataset's units."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        return self._network(config, ("score",), 2 if self.both_orders else 1)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs, signals = self._read(network, batch, requested)
        assert outputs.logits is not None
        return signals | {Signal.SCORE: self.middle + self.scale * outputs.logits[:, 0].float()}

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        encoded = encode_texts(examples, task, tokenizer, length, self.both_orders)
        if answers:
            encoded.values[Field.SCORES] = _scores(examples)
        return encoded

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        scores = np.zeros(len(encoded))
        for chosen, _, signals in outputs:
            scores[chosen] = signals[Signal.SCORE].tolist()
        return [float(score) for score in scores]


def _scores(examples: Sequence[Row]) -> NDArray[np.float32]:
    for index, label in enumerate(column(examples, "label")):
        if not isinstance(label, (int, float)) or not math.isfinite(label):
            raise DataError(f"example {number_of(examples, index)}: its label {label!r} is not a finite number")
    return np.asarray([example["label"] for example in examples], dtype=np.float32)
