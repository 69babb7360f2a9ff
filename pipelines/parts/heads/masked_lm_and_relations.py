"""StructBERT's pre-training head: predicts masked or shuffled tokens, and how two segments are related."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.architectures import Architecture
from pipelines.parts.heads import Batch
from pipelines.parts.heads.masked_lm_and_pairs import MaskedLMAndPairsHead
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task

RELATION_LOGITS = Signal.of_head("relation_logits")
"""[B, 3]: logits that the second segment of each row follows the first, precedes it, or is of another document."""
RELATIONS = 3


class MaskedLMAndRelationsHead(MaskedLMAndPairsHead, name="masked_lm_and_relations"):
    """Transformers' own pre-training network, whose classifier of the pooled first state has three classes (Wang et al.
    2019, StructBERT §2.2.2)."""

    paper = "arXiv:1908.04577"
    provides = MaskedLMAndPairsHead.provides - {Signal.SEGMENT_LOGITS} | {RELATION_LOGITS}

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from torch import nn

        from pipelines.networks.backbone_with_head import linear

        network = super().build(config, task)
        architecture = Architecture.of(config)
        assert architecture is not None  # others do not have the ability
        # the linear layer of two scores, which the architecture's classifier is, or ends with
        classifier = network.get_submodule(architecture.segment_pairs[-1])
        path, layer = next(
            (name, module) for name, module in classifier.named_modules() if isinstance(module, nn.Linear)
        )
        path = ".".join(part for part in (architecture.segment_pairs[-1], path) if part)
        network.set_submodule(path, linear(layer.in_features, RELATIONS, config))
        return network

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        pairs = requested - {RELATION_LOGITS} | ({Signal.SEGMENT_LOGITS} if RELATION_LOGITS in requested else set())
        signals = super().signals(network, batch, frozenset(pairs))
        if RELATION_LOGITS in requested:
            signals[RELATION_LOGITS] = signals.pop(Signal.SEGMENT_LOGITS)
        return signals
