"""Classification of texts and pairs with an exit after every layer (Xin et al. 2020, DeeBERT; Zhou et al. 2020,
PABEE)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from pydantic import Field as Option

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.heads import Batch
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.networks.early_exits import EarlyExitClassifier
    from pipelines.task_families import Task

EXIT_LOGITS = Signal.of_head("exit_logits")
"""[layers, B, C]: class scores after each layer."""


class EarlyExitClassificationHead(SequenceClassificationHead, name="early_exit_classification"):
    """Class scores after every layer: an answer is that of the first layer that is sure of it, and the layers above are
    not computed. Of several texts at a time, layers are computed until all have their answers.

    Trained with `exit_cross_entropy`. Raises RecipeError for a backbone that is not `layered`.
    """

    paper = "arXiv:2004.12993"
    provides = SequenceClassificationHead.provides | {EXIT_LOGITS}
    needs_abilities = SequenceClassificationHead.needs_abilities | {Ability.LAYERED}
    skips_layers: ClassVar[bool] = True

    confidence: float = Option(0.9, gt=0, le=1)
    """Probability of the likeliest class from which a layer is sure; 1: every text passes all layers. The probability
    of a layer's classifier, in place of the entropy of DeeBERT §3.3 and the agreement of layers of PABEE §3."""
    pooling: Literal["cls", "mean", "last", "concat"] = "mean"
    """Representation of a text after each layer, as in `sequence_classification`."""
    hidden: None = None
    both_orders: Literal[False] = False

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.early_exits import EarlyExitClassifier

        architecture = Architecture.of(config)
        if architecture is None or Ability.LAYERED not in architecture.offers:
            raise RecipeError(
                f"head {self.name}: the layers of the backbone {config.model_type} cannot be left one by one; use "
                "sequence_classification"
            )
        (layers,) = architecture.stacks
        labels = task.labels if task else ()
        config.classifier_pooling, config.classifier_hidden, config.classifier_orders = self.pooling, None, 1
        config.exit_layers, config.exit_confidence = layers, self.confidence
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}
        return EarlyExitClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        if EXIT_LOGITS not in requested:
            return super().signals(network, batch, requested)
        signals = super().signals(network, batch, requested | {Signal.HIDDEN_STATES})
        states, last = signals[Signal.HIDDEN_STATES], signals[Signal.LOGITS]
        exits = cast("EarlyExitClassifier", network)
        return signals | {EXIT_LOGITS: exits.exit_logits(states, batch.get(Field.ATTENTION_MASK), last)}
