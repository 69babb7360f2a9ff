"""The network that scores definitions for a word in its context (Kumar et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead, linear
from pipelines.networks.sequence_classifier import pool


@dataclass
class SenseOutput(ModelOutput):
    """Outputs of a sense scorer."""

    logits: Tensor | None = None
    """[B, K]: score of each definition, −∞ where an example has fewer."""
    vectors: Tensor | None = None
    """[R, H]: the mean state of each row."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [R, L, H], embeddings first."""


class SenseScorer(BackboneWithHead):
    """A backbone that reads contexts and definitions as rows of their own, and a map from the state of a word to the
    vectors of definitions."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.word_to_definition = linear(config.hidden_size, config.hidden_size, config)

    def forward(
        self,
        input_ids: Tensor,
        sense_rows: Tensor,
        word_tokens: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> SenseOutput:
        """Scores (W w + b) · d: b · d is what a definition d has in any context.

        Args:
            input_ids: int64 [R, L], the rows of the examples one after the other, each a context and its definitions.
            sense_rows: int64 [B, 1 + K], 1 for rows of an example, 0 for padding; R = B · (1 + K).
            word_tokens: int64 [B, L], 1 for the tokens of the word in the context.
            others: further arguments of the backbone.
        """
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        states = outputs.last_hidden_state
        vectors = pool(states, attention_mask, "mean")
        definitions = vectors.view(*sense_rows.shape, vectors.shape[-1])[:, 1:]
        words = pool(states.view(*sense_rows.shape, *states.shape[1:])[:, 0], word_tokens, "mean")
        scores = (self.word_to_definition(words).unsqueeze(1) * definitions).sum(-1)
        return SenseOutput(scores.masked_fill(sense_rows[:, 1:] == 0, float("-inf")), vectors, outputs.hidden_states)
