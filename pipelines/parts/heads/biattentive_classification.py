"""Classification of texts and pairs by a network of its own above the backbone, with attention between two texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field as Option

from pipelines.parts.heads import Batch
from pipelines.parts.heads.class_scores import ClassScoresHead
from pipelines.parts.heads.pooled_text import is_pair
from pipelines.parts.heads.siamese_classification import SiameseClassificationHead
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Row, Task
    from pipelines.task_families.encoding import EncodedExamples


class BiattentiveClassificationHead(ClassScoresHead, name="biattentive_classification"):
    """Class scores of a pair, or of a text, from LSTMs above the backbone and attention between them (McCann et al.
    2017, §5).

    What Peters et al. 2019 (arXiv:1903.05987, §2) put above frozen layers in place of a linear layer. The texts of a
    pair are read apart; the rows of a pair are adjacent, and each text may have `length` tokens.
    """

    paper = "arXiv:1708.00107"
    reads = frozenset({"pair_classification", "text_classification"})
    annotates = True

    size: int = Option(128, ge=2, multiple_of=2)
    """Width of the LSTMs, half of it from each direction."""
    dropout: float = Option(0.2, ge=0, lt=1)
    """Share of the elements dropped of what each layer reads."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.biattention import BiattentiveClassifier

        config.biattentive_size, config.biattentive_dropout = self.size, self.dropout
        config.biattentive_texts = 2 if task is not None and is_pair(task) else 1
        self._name_classes(config, task)
        return BiattentiveClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        _, signals = self._read(network, batch, requested)
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
        return SiameseClassificationHead().encode(examples, task, tokenizer, length, answers=answers)
