"""Discriminator head: predicts which tokens a generator replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.heads import Batch, Head
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES
from pipelines.parts.heads.masked_lm import read_backbone
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class ReplacedTokensHead(Head, name="replaced_tokens"):
    """Transformers' own discriminator: one logit for each token, high if it is predicted to be replaced (Clark et al.
    2020, §3.1)."""

    paper = "arXiv:2003.10555"
    needs = frozenset({Field.INPUT_IDS})
    provides = LAYERS | {Signal.REPLACED_LOGITS, Signal.POOLED}
    needs_ability_for = NEED_ABILITIES
    needs_abilities = frozenset({Ability.BIDIRECTIONAL, Ability.DISCRIMINATOR})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from transformers import AutoModelForPreTraining

        network: PreTrainedModel = AutoModelForPreTraining.from_config(config)
        return network

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        top, signals = read_backbone(network, batch, requested)
        if Signal.REPLACED_LOGITS in requested:
            signals[Signal.REPLACED_LOGITS] = network.get_submodule("discriminator_predictions")(top)
        return signals
