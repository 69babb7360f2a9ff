"""Classification of texts and text pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.parts.heads import Batch, Signals
from pipelines.parts.heads.class_labels import class_labels
from pipelines.parts.heads.layer_signals import LAYERS
from pipelines.parts.heads.pooled_text import PooledTextHead, encode_texts, highest, one_order
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task, TaskFamily
    from pipelines.task_families.encoding import EncodedExamples


class SequenceClassificationHead(PooledTextHead, name="sequence_classification"):
    """Class scores of a text, or of a pair encoded as one row."""

    paper = "arXiv:1810.04805"
    provides = LAYERS | {Signal.LOGITS, Signal.POOLED, Signal.NEXT_LOGITS}
    reads = frozenset({"text_classification", "pair_classification"})
    labels = frozenset({Field.LABELS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.LOGITS})

    both_orders: bool = False
    """Whether a pair is read in both orders and their vectors added (Radford et al. 2018, §3.3, similarity)."""

    def unfit(self, family: TaskFamily) -> str | None:
        return one_order(family) if self.both_orders else None

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        return self._network(config, task.labels if task else (), 2 if self.both_orders else 1)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs, signals = self._read(network, batch, requested)
        return signals | {Signal.LOGITS: outputs.logits}

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
            encoded.values[Field.LABELS] = class_labels(examples, task)
        return encoded

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        return [task.labels[index] for index in highest(encoded, outputs)]
