"""What a head gives of the layers below it: their states, and the scores of their attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipelines.parts.architectures import Architecture
from pipelines.vocabulary import Ability, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

LAYERS = frozenset({Signal.HIDDEN_STATES, Signal.ATTENTION_SCORES})
"""Signals that are made of the states of all layers."""
NEED_ABILITIES: Mapping[Signal, Ability] = {Signal.ATTENTION_SCORES: Ability.ATTENTION_SCORES}
"""Those that a backbone must have an ability for."""


def layer_signals(network: PreTrainedModel, outputs: Any, requested: frozenset[Signal]) -> dict[Signal, Any]:
    """HIDDEN_STATES and ATTENTION_SCORES, if `requested`, of the `outputs` of `network`, which then have all
    `hidden_states`.

    The scores are computed again from the states that a layer reads: whatever computes attention returns none.
    """
    signals: dict[Signal, Any] = {}
    if Signal.HIDDEN_STATES in requested:
        signals[Signal.HIDDEN_STATES] = outputs.hidden_states
    if Signal.ATTENTION_SCORES in requested:
        signals[Signal.ATTENTION_SCORES] = _attention_scores(network, outputs.hidden_states)
    return signals


def _attention_scores(network: PreTrainedModel, hidden_states: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Scores [B, heads, L, L] of each layer."""
    config, backbone = network.config, network.base_model
    architecture = Architecture.of(config)
    assert architecture is not None and Ability.ATTENTION_SCORES in architecture.offers, config.model_type
    size = architecture.head_width(config)
    projections = [
        (layer, layer.get_submodule(names.attention.query), layer.get_submodule(names.attention.key))
        for path, names in architecture.stacks.items()
        if names.attention is not None
        for layer in backbone.get_submodule(path).children()
    ]
    scores = []
    for (layer, query, key), states in zip(projections, hidden_states[:-1], strict=True):
        read = architecture.attention_input(layer, states)
        # a layer that heads were removed from has fewer
        q, k = (one(read).unflatten(-1, (-1, size)).transpose(1, 2) for one in (query, key))
        scores.append(q @ k.transpose(-1, -2) / size**0.5)
    return tuple(scores)
