"""Masked language modelling on the states of any single stack: recurrent, convolutional or of attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.heads import Batch, Head, backbone_inputs
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class MaskedLMOnStatesHead(Head, name="masked_lm_on_states"):
    """A prediction network of its own above a backbone whose architecture brings none; `masked_lm` is for those that
    do.

    The same for every backbone, so that these can be compared. Masked positions are gathered before the projection. A
    backbone that reads from one side only predicts from that side.
    """

    paper = "arXiv:1810.04805"
    needs = frozenset({Field.INPUT_IDS, Field.MASKED_POSITIONS})
    provides = frozenset({Signal.MASKED_LOGITS, Signal.HIDDEN_STATES})
    needs_abilities = frozenset({Ability.ONE_STACK})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.masked_token_predictor import MaskedTokenPredictor

        return MaskedTokenPredictor(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        # transformers types the methods of a network as modules
        outputs = network.run_backbone(  # type: ignore[operator]
            backbone_inputs(batch, network), output_hidden_states=Signal.HIDDEN_STATES in requested
        )
        signals: dict[Signal, Any] = {}
        if Signal.MASKED_LOGITS in requested:
            chosen = outputs.last_hidden_state.flatten(0, 1)[batch[Field.MASKED_POSITIONS]]
            signals[Signal.MASKED_LOGITS] = network.predict(chosen)  # type: ignore[operator]
        if Signal.HIDDEN_STATES in requested:
            signals[Signal.HIDDEN_STATES] = outputs.hidden_states
        return signals
