"""The network for span extraction: a backbone and two scores of each token, as first and as last of the answer."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead, linear


@dataclass
class SpanExtractionOutput(ModelOutput):
    """Outputs of a span extractor."""

    logits: Tensor | None = None
    """[B, L, 2]: scores as first and as last token."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B, L, H], embeddings first."""


class SpanExtractor(BackboneWithHead):
    """backbone → linear, with the parameter names of Hugging Face's question-answering networks."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.qa_outputs = linear(config.hidden_size, 2, config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> SpanExtractionOutput:
        """Scores of the rows `input_ids` [B, L]; `others` are further arguments of the backbone."""
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        return SpanExtractionOutput(self.qa_outputs(outputs.last_hidden_state), outputs.hidden_states)
