"""BERT's pre-training head: predicts masked tokens, and whether the second segment of a row continues the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pipelines.parts.architectures import Architecture
from pipelines.parts.heads import Batch
from pipelines.parts.heads.masked_lm import MaskedLMHead, backbone_outputs, signals_of
from pipelines.vocabulary import Ability, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class MaskedLMAndPairsHead(MaskedLMHead, name="masked_lm_and_pairs"):
    """Transformers' own pre-training network: a vocabulary projection of masked positions, and a classifier of the
    pooled state of the first token (Devlin et al. 2018, §3.1).

    The architecture says which modules that classifier consists of: next sentences in BERT, their order in ALBERT.
    """

    paper = "arXiv:1810.04805"
    provides = MaskedLMHead.provides | {Signal.SEGMENT_LOGITS}
    needs_abilities = MaskedLMHead.needs_abilities | {Ability.SEGMENT_PAIRS}

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from transformers import AutoModelForPreTraining

        return cast("PreTrainedModel", AutoModelForPreTraining.from_config(config))

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs = backbone_outputs(network, batch, requested)
        signals = signals_of(network, outputs, batch, requested)
        signals |= self.masked_signals(network, batch, outputs.last_hidden_state, requested)
        if Signal.SEGMENT_LOGITS in requested:
            architecture = Architecture.of(network.config)
            assert architecture is not None  # others do not have the ability
            logits = outputs.pooler_output
            for module in architecture.segment_pairs:
                logits = network.get_submodule(module)(logits)
            signals[Signal.SEGMENT_LOGITS] = logits
        return signals
