"""The head that predicts masked tokens, over the masked positions only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.heads import Head
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel

PREDICTION_MODULE = {"bert": "cls.predictions"}
"""Architecture (`model_type`) → its own module that maps hidden states to vocabulary scores."""


class MaskedLMHead(Head, name="masked_lm"):
    """Transformers' own masked-LM network; hidden states are gathered before the vocabulary projection.

    The projection over all positions is most of a small model's cost, and the loss ignores all but the masked ones.
    """

    paper = "arXiv:1810.04805"
    needs = frozenset({Field.INPUT_IDS, Field.MASKED_POSITIONS})
    provides = frozenset({Signal.MASKED_LOGITS, Signal.POOLED, Signal.HIDDEN_STATES})

    def build(self, config: PretrainedConfig, labels: Sequence[str]) -> PreTrainedModel:
        from transformers import AutoModelForMaskedLM

        if config.model_type not in PREDICTION_MODULE:
            known = ", ".join(sorted(PREDICTION_MODULE))
            raise RecipeError(
                f"head masked_lm: cannot find the prediction module of {config.model_type!r}; known: {known}"
            )
        network: PreTrainedModel = AutoModelForMaskedLM.from_config(config)
        return network

    def signals(
        self, network: PreTrainedModel, batch: Mapping[Field, Tensor], wanted: frozenset[Signal]
    ) -> dict[Signal, Tensor | tuple[Tensor, ...]]:
        mask = batch.get(Field.ATTENTION_MASK)
        said = network.base_model(
            input_ids=batch[Field.INPUT_IDS],
            attention_mask=mask,
            position_ids=batch.get(Field.POSITION_IDS),
            output_hidden_states=Signal.HIDDEN_STATES in wanted,
        )
        top = said.last_hidden_state
        signals: dict[Signal, Tensor | tuple[Tensor, ...]] = {}
        if Signal.MASKED_LOGITS in wanted:
            chosen = top.flatten(0, 1)[batch[Field.MASKED_POSITIONS]]
            signals[Signal.MASKED_LOGITS] = network.get_submodule(PREDICTION_MODULE[network.config.model_type])(chosen)
        if Signal.POOLED in wanted:
            signals[Signal.POOLED] = (
                top.mean(1) if mask is None else (top * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
            )
        if Signal.HIDDEN_STATES in wanted:
            signals[Signal.HIDDEN_STATES] = said.hidden_states
        return signals
