"""The states of a row of plain text, as an encoder gives them, for objectives that compare states alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.heads import Batch, Head
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES
from pipelines.parts.heads.masked_lm import read_backbone
from pipelines.vocabulary import Ability, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class TokenStates(Head, name="token_states"):
    """The layers of a bidirectional backbone at every token, without any layer above them, and without predictions."""

    paper = "arXiv:1909.06775"
    provides = LAYERS | {Signal.POOLED}
    needs_ability_for = NEED_ABILITIES
    needs_abilities = frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.backbone_with_head import BackboneWithHead

        return BackboneWithHead(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        return read_backbone(network, batch, requested)[1]
