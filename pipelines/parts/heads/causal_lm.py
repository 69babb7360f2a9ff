"""The head that predicts what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.parts.heads import Batch, Head, backbone_inputs
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class CausalLMHead(Head, name="causal_lm"):
    """A body that reads from left to right under its architecture's own vocabulary projection.

    A body that remembers is given `memory=` and says `memory` (detached); one with dropout of its own on its output says
    `raw`, the output before it.
    """

    paper = "Radford et al. 2018"
    provides = frozenset({Signal.NEXT_LOGITS, Signal.HIDDEN_STATES, Signal.POOLED, Signal.MEMORY, Signal.ACTIVATIONS})
    needs_abilities = frozenset({Ability.CAUSAL})
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {
        Signal.MEMORY: Ability.MEMORY,
        Signal.ACTIVATIONS: Ability.RECURRENT,
    }

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from transformers import AutoModelForCausalLM

        network: PreTrainedModel = AutoModelForCausalLM.from_config(config)
        return network

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        remembered = {"memory": batch[Field.MEMORY]} if Field.MEMORY in batch else {}
        # nothing is read twice: without a cache of keys and values a row costs less memory
        cache = {"use_cache": False} if hasattr(network.config, "use_cache") else {}
        said = network.base_model(
            **backbone_inputs(batch), **remembered, **cache, output_hidden_states=Signal.HIDDEN_STATES in requested
        )
        top = said.last_hidden_state
        signals: dict[Signal, Any] = {}
        if Signal.NEXT_LOGITS in requested:
            signals[Signal.NEXT_LOGITS] = network.get_output_embeddings()(top)
        if Signal.POOLED in requested:
            # the last token alone has read the whole row
            mask = batch.get(Field.ATTENTION_MASK)
            signals[Signal.POOLED] = (
                top[:, -1] if mask is None else top.take_along_dim(mask.sum(1)[:, None, None] - 1, 1).squeeze(1)
            )
        if Signal.HIDDEN_STATES in requested:
            signals[Signal.HIDDEN_STATES] = said.hidden_states
        if Signal.MEMORY in requested:
            signals[Signal.MEMORY] = said.memory
        if Signal.ACTIVATIONS in requested:
            signals[Signal.ACTIVATIONS] = (top, said.raw)
        return signals
