"""The network whose vectors of texts are entities and relations: a backbone without any layer above it (Wang et al.
2019, KEPLER §3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead
from pipelines.networks.sequence_classifier import pool


@dataclass
class EntityOutput(ModelOutput):
    """Outputs of an entity encoder."""

    entities: Tensor | None = None
    """[R, H]: the vector of each text."""
    last_hidden_state: Tensor | None = None
    """[R, L, H]."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [R, L, H], embeddings first."""


class EntityEncoder(BackboneWithHead):
    """A backbone; the vector of a text is the top state of its first token, or the mean of those of all its tokens.

    Configuration key: `entity_pooling`, one of `sequence_classifier.pool`.
    """

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> EntityOutput:
        """The vectors of the rows `input_ids` [R, L]; `others` are further arguments of the backbone."""
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        top = outputs.last_hidden_state
        return EntityOutput(pool(top, attention_mask, self.config.entity_pooling), top, outputs.hidden_states)


def distances(heads: Tensor, relations: Tensor, tails: Tensor) -> Tensor:
    """[B, K]: ‖h + r − t‖₁ of facts (Bordes et al. 2013, TransE §2; KEPLER §3.2), for `heads` and `relations`
    [B, H], and the K candidates `tails` [B, K, H] of each."""
    return ((heads + relations).unsqueeze(1) - tails).abs().sum(-1)
