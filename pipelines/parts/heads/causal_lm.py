"""Language-modelling head: predicts the next token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.parts.heads import Batch, Head, backbone_inputs
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class CausalLMHead(Head, name="causal_lm"):
    """A causal backbone with its architecture's own vocabulary projection.

    A backbone with the ability `memory` takes the argument `memory=` and returns `memory` (detached); a recurrent one
    returns `raw`, its output before dropout.
    """

    paper = "Radford et al. 2018"
    may_read = frozenset({Field.ATTENTION_MASK, Field.MEMORY})
    provides = frozenset({Signal.NEXT_LOGITS, Signal.HIDDEN_STATES, Signal.POOLED, Signal.MEMORY, Signal.ACTIVATIONS})
    needs_abilities = frozenset({Ability.CAUSAL})
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {
        Signal.HIDDEN_STATES: Ability.ONE_STACK,
        Signal.POOLED: Ability.ONE_STACK,
        Signal.MEMORY: Ability.MEMORY,
        Signal.ACTIVATIONS: Ability.RECURRENT,
    }

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from transformers import AutoModelForCausalLM

        network: PreTrainedModel = AutoModelForCausalLM.from_config(config)
        return network

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        memory = {"memory": batch[Field.MEMORY]} if Field.MEMORY in batch else {}
        # no generation: without a cache of keys and values a row takes less memory
        cache = {"use_cache": False} if hasattr(network.config, "use_cache") else {}
        outputs = network.base_model(
            **backbone_inputs(batch, network), **memory, **cache, output_hidden_states=Signal.HIDDEN_STATES in requested
        )
        top = outputs.last_hidden_state
        signals: dict[Signal, Any] = {}
        if Signal.NEXT_LOGITS in requested:
            signals[Signal.NEXT_LOGITS] = network.get_output_embeddings()(top)
        if Signal.POOLED in requested:
            # only the last token has attended to the whole row
            mask = batch.get(Field.ATTENTION_MASK)
            signals[Signal.POOLED] = (
                top[:, -1] if mask is None else top.take_along_dim(mask.sum(1)[:, None, None] - 1, 1).squeeze(1)
            )
        if Signal.HIDDEN_STATES in requested:
            signals[Signal.HIDDEN_STATES] = outputs.hidden_states
        if Signal.MEMORY in requested:
            signals[Signal.MEMORY] = outputs.memory
        if Signal.ACTIVATIONS in requested:
            signals[Signal.ACTIVATIONS] = (top, outputs.raw)
        return signals
