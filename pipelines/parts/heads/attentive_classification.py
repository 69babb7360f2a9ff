"""Classification of texts by self-attention over a language model's states (Chronopoulou et al. 2019, SiATL)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field as Option

from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.class_labels import class_labels
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.pooled_text import encode_texts, highest
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.encoding import EncodedExamples


class AttentiveClassificationHead(Head, name="attentive_classification"):
    """Class scores of a text from an LSTM above the backbone, its states weighted by self-attention.

    On a backbone that is a language model, the next tokens are still predicted, by its own embeddings.
    """

    paper = "arXiv:1902.10547"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    provides = LAYERS | {Signal.LOGITS, Signal.NEXT_LOGITS}
    needs_abilities = frozenset({Ability.ONE_STACK})
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {**NEED_ABILITIES, Signal.NEXT_LOGITS: Ability.CAUSAL}
    reads = frozenset({"text_classification", "pair_classification"})
    labels = frozenset({Field.LABELS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.LOGITS})
    annotates = True

    size: int = Option(100, ge=0)
    """Width of the LSTM above the backbone; 0: attention over the backbone's own states."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.attentive_classifier import AttentiveClassifier

        labels = task.labels if task else ()
        config.attentive_size = self.size
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}
        return AttentiveClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs = network(**backbone_inputs(batch, network), output_hidden_states=bool(LAYERS & requested))
        signals = {Signal.LOGITS: outputs.logits, **layer_signals(network, outputs, requested)}
        if Signal.NEXT_LOGITS in requested:
            # transformers types it as a module
            signals[Signal.NEXT_LOGITS] = network.next_logits(outputs.last_hidden_state)  # type: ignore[operator]
        return signals

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
