"""Permutation-LM head: predicts tokens in a random order, with a query stream that cannot see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pipelines.parts.heads import Batch, Head, backbone_inputs
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class PermutedLMHead(Head, name="permuted_lm"):
    """XLNet's two-stream network (Yang et al. 2019, §2.3) with partial prediction and segment memory (§2.4).

    The memory is the content stream of the last `mem_len` tokens, an option of the backbone; with `mem_len` 0 there is
    none. Rows that continue each other must not overlap, so that no memory contains information on tokens still to be
    predicted.
    """

    paper = "arXiv:1906.08237"
    needs = frozenset({Field.INPUT_IDS, Field.PERMUTATION_MASK, Field.TARGET_MAPPING})
    may_read = frozenset({Field.ATTENTION_MASK, Field.MEMORY})
    provides = frozenset({Signal.MASKED_LOGITS, Signal.HIDDEN_STATES, Signal.POOLED, Signal.MEMORY})
    needs_abilities = frozenset({Ability.TWO_STREAM})
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = {Signal.MEMORY: Ability.MEMORY}

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from transformers import XLNetConfig, XLNetLMHeadModel

        return XLNetLMHeadModel(cast("XLNetConfig", config))

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        # without mem_len the network would keep the states of all earlier rows
        use_memory = Signal.MEMORY in requested and bool(network.config.mem_len)
        outputs = network.base_model(
            **backbone_inputs(batch, network),
            perm_mask=batch[Field.PERMUTATION_MASK],
            target_mapping=batch[Field.TARGET_MAPPING],
            mems=list(batch.get(Field.MEMORY, ())) or None,
            use_mems=use_memory,
            output_hidden_states=not requested.isdisjoint({Signal.HIDDEN_STATES, Signal.POOLED}),
        )
        signals: dict[Signal, Any] = {}
        if Signal.MASKED_LOGITS in requested:
            signals[Signal.MASKED_LOGITS] = network.get_output_embeddings()(outputs.last_hidden_state.flatten(0, 1))
        if outputs.hidden_states is not None:
            # the two streams alternate, content first
            content = outputs.hidden_states[::2]
            mask = batch.get(Field.ATTENTION_MASK)
            weights = content[-1].new_ones(content[-1].shape[:2]) if mask is None else mask.to(content[-1].dtype)
            signals[Signal.HIDDEN_STATES] = content
            signals[Signal.POOLED] = (content[-1] * weights.unsqueeze(-1)).sum(1) / weights.sum(1, keepdim=True)
        if Signal.MEMORY in requested:
            signals[Signal.MEMORY] = tuple(outputs.mems) if use_memory else ()
        return signals
