"""The network that extracts spans from a text beside its translation (Cui et al. 2019, Dual BERT §4).

Shapes: B rows, L tokens of the target, S tokens of the source (its translation), H elements of a state.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from pipelines.networks.backbone_with_head import BackboneWithHead, linear
from pipelines.networks.span_extractor import SpanExtractionOutput


class DualSpanExtractor(BackboneWithHead):
    """One backbone for both languages; each token of the target attends to the source, and both states are scored."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.source = linear(config.hidden_size, config.hidden_size, config)
        self.norm = nn.LayerNorm(config.hidden_size)
        self.qa_outputs = linear(2 * config.hidden_size, 2, config)

    def forward(
        self,
        input_ids: Tensor,
        source_ids: Tensor,
        source_mask: Tensor,
        source_types: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> SpanExtractionOutput:
        """Scores of the target's rows `input_ids` [B, L], beside the source's `source_ids` [B, S] with 1 for their
        tokens in `source_mask` [B, S]; `others` are further arguments of the backbone for the target."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        outputs = self.run_backbone({"input_ids": input_ids, "attention_mask": mask, **others}, output_hidden_states)
        source = {"input_ids": source_ids, "attention_mask": source_mask}
        if source_types is not None:
            source["token_type_ids"] = source_types
        target, translation = outputs.last_hidden_state, self.run_backbone(source).last_hidden_state
        read = self_adaptive_attention(target, translation, mask, source_mask)
        fused = self.norm(target + self.source(read))
        return SpanExtractionOutput(self.qa_outputs(torch.cat([target, fused], dim=-1)), outputs.hidden_states)


def self_adaptive_attention(target: Tensor, source: Tensor, target_mask: Tensor, source_mask: Tensor) -> Tensor:
    """[B, L, H]: what each token of `target` [B, L, H] reads of `source` [B, S, H].

    The scores of pairs, A = T Sᵀ, are averaged over what a token of either side attends to in its own text, softmax(T
    Tᵀ) A softmax(S Sᵀ)ᵀ, before they are normalised over the source. Products are divided by √H, which the paper does
    not do: states of a small network leave no gradient otherwise.
    """
    scale = target.shape[-1] ** 0.5
    own = _attention(target, target, target_mask, scale)
    others = _attention(source, source, source_mask, scale)
    pairs = own @ (target @ source.transpose(1, 2) / scale) @ others.transpose(1, 2)
    read: Tensor = pairs.masked_fill(source_mask.unsqueeze(1) == 0, float("-inf")).softmax(-1) @ source
    return read


def _attention(queries: Tensor, keys: Tensor, mask: Tensor, scale: float) -> Tensor:
    scores = queries @ keys.transpose(1, 2) / scale
    return scores.masked_fill(mask.unsqueeze(1) == 0, float("-inf")).softmax(-1)
