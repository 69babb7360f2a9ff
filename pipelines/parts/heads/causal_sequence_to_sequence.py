"""One causal network that reads a row and then writes a target: encoder and decoder are the same weights (Dai & Le
2015, §2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pipelines.errors import RecipeError
from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class CausalSequenceToSequenceHead(Head, name="causal_sequence_to_sequence"):
    """A causal backbone with its architecture's own vocabulary projection, which reads the target after the row.

        read    x1 … xL  <pad>  y1 … yT-1
        write              y1   y2 …  yT

    What is known of the row when writing begins is the backbone's state after its last token, for an LSTM a single
    vector. The padding token begins the target, as in T5. Padding of the row is masked for attention; a recurrent
    backbone reads whole rows.
    """

    paper = "arXiv:1511.01432"
    needs = frozenset({Field.INPUT_IDS, Field.TARGET_IDS})
    provides = frozenset({Signal.TARGET_LOGITS})
    needs_abilities = frozenset({Ability.CAUSAL, Ability.ONE_STACK})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from transformers import AutoModelForCausalLM

        network: PreTrainedModel = AutoModelForCausalLM.from_config(config)
        return network

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        """TARGET_LOGITS [B, T, V]. Raises RecipeError where row and target together exceed the backbone's positions."""
        import torch

        if Signal.TARGET_LOGITS not in requested:
            return {}
        source, target = cast("Tensor", batch[Field.INPUT_IDS]), cast("Tensor", batch[Field.TARGET_IDS])
        begin = torch.full_like(target[:, :1], network.config.pad_token_id or 0)
        ids = torch.cat([source, begin, target[:, :-1].clamp(min=0)], dim=1)
        positions = getattr(network.config, "max_position_embeddings", None)
        if positions is not None and ids.shape[1] > positions:
            raise RecipeError(
                f"head {self.name}: a row of {source.shape[1]} tokens and its target of {target.shape[1]} do not fit "
                f"{positions} positions; raise backbone.positions or lower budget.length"
            )
        inputs = {"input_ids": ids}
        if (mask := batch.get(Field.ATTENTION_MASK)) is not None:
            inputs["attention_mask"] = torch.cat([mask, torch.ones_like(target)], dim=1)
        cache = {"use_cache": False} if hasattr(network.config, "use_cache") else {}
        states = network.base_model(**inputs, **cache).last_hidden_state[:, source.shape[1] :]
        return {Signal.TARGET_LOGITS: cast("Any", network.get_output_embeddings())(states)}
