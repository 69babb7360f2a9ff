"""Classification of texts by self-attention over a language model's states (Chronopoulou et al. 2019, SiATL)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field as Option

from pipelines.parts.heads import Batch
from pipelines.parts.heads.class_labels import class_labels
from pipelines.parts.heads.class_scores import ClassScoresHead
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES
from pipelines.parts.heads.pooled_text import encode_texts
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Row, Task
    from pipelines.task_families.encoding import EncodedExamples


class AttentiveClassificationHead(ClassScoresHead, name="attentive_classification"):
    """Class scores of a text from an LSTM above the backbone, its states weighted by self-attention.

    On a backbone that is a language model, the next tokens are still predicted, by its own embeddings.
    """

    paper = "arXiv:1902.10547"
    provides = LAYERS | {Signal.LOGITS, Signal.NEXT_LOGITS}
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {**NEED_ABILITIES, Signal.NEXT_LOGITS: Ability.CAUSAL}
    reads = frozenset({"text_classification", "pair_classification"})
    annotates = True

    size: int = Option(100, ge=0)
    """Width of the LSTM above the backbone; 0: attention over the backbone's own states."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.attentive_classifier import AttentiveClassifier

        config.attentive_size = self.size
        self._name_classes(config, task)
        return AttentiveClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs, signals = self._read(network, batch, requested)
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
