"""Masked-LM head: predicts tokens at the masked positions only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.heads import Batch, Head, backbone_inputs
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class MaskedLMHead(Head, name="masked_lm"):
    """Transformers' own masked-LM network; masked positions are gathered before the vocabulary projection.

    Projecting all positions is most of a small model's cost, and the loss ignores all but the masked ones.
    """

    paper = "arXiv:1810.04805"
    needs = frozenset({Field.INPUT_IDS, Field.MASKED_POSITIONS})
    provides = LAYERS | {Signal.MASKED_LOGITS, Signal.POOLED}
    needs_ability_for = NEED_ABILITIES
    needs_abilities = frozenset({Ability.BIDIRECTIONAL})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM, AutoModelForPreTraining

        architecture = Architecture.of(config)
        if architecture is None or not architecture.masked_lm:
            known = ", ".join(one.name for one in Architecture.all() if one.masked_lm)
            raise RecipeError(
                f"head {self.name}: unknown prediction modules of {config.model_type!r}; supported: {known}"
            )
        # XLNet's network for masked tokens is the one that transformers lists as its pre-training model
        if type(config) not in MODEL_FOR_MASKED_LM_MAPPING:
            return cast("PreTrainedModel", AutoModelForPreTraining.from_config(config))
        return cast("PreTrainedModel", AutoModelForMaskedLM.from_config(config))

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        return self.top_and_signals(network, batch, requested)[1]

    def top_and_signals(
        self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]
    ) -> tuple[Tensor, dict[Signal, Any]]:
        """The top hidden states [B, L, H], and the signals `requested`."""
        top, signals = read_backbone(network, batch, requested)
        return top, signals | self.masked_signals(network, batch, top, requested)

    def masked_signals(
        self, network: PreTrainedModel, batch: Batch, top: Tensor, requested: frozenset[Signal]
    ) -> dict[Signal, Any]:
        """MASKED_LOGITS of the hidden states `top` [B, L, H], if `requested`."""
        signals: dict[Signal, Any] = {}
        if Signal.MASKED_LOGITS in requested:
            chosen = top.flatten(0, 1)[batch[Field.MASKED_POSITIONS]]
            architecture = Architecture.of(network.config)
            assert architecture is not None  # `build` refuses others
            for module in architecture.masked_lm:
                chosen = network.get_submodule(module)(chosen)
            signals[Signal.MASKED_LOGITS] = chosen
        return signals


def read_backbone(
    network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]
) -> tuple[Tensor, dict[Signal, Any]]:
    """The top hidden states [B, L, H] of a bidirectional backbone, and POOLED and `LAYERS` if `requested`."""
    outputs = backbone_outputs(network, batch, requested)
    return outputs.last_hidden_state, signals_of(network, outputs, batch, requested)


def backbone_outputs(network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> Any:
    """The backbone's own outputs for `batch`, with all hidden states if `requested` has any of `LAYERS`."""
    from inspect import signature

    from pipelines.networks.visibility import with_mask

    backbone, inputs = network.base_model, with_mask(backbone_inputs(batch, network), network.config)
    key = str(Field.POSITION_IDS)
    if key in inputs and key not in signature(backbone.forward).parameters:
        del inputs[key]  # relative positions do not change when a text is shifted
    return backbone(**inputs, output_hidden_states=bool(LAYERS & requested))


def signals_of(network: PreTrainedModel, outputs: Any, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
    """POOLED and `LAYERS` of the outputs of the backbone of `network`, if `requested`."""
    signals = layer_signals(network, outputs, requested)
    if Signal.POOLED in requested:
        top, mask = outputs.last_hidden_state, batch.get(Field.ATTENTION_MASK)
        signals[Signal.POOLED] = (
            top.mean(1) if mask is None else (top * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        )
    return signals
