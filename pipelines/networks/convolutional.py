"""Gated convolutions with residuals, one state for each token (Dauphin et al. 2017, arXiv:1612.08083, §2; Gehring et
al. 2017, arXiv:1705.03122, §3.2).

    h ← norm(h + V h ⊙ σ(W h)),   V and W convolutions over a window around each token
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import glu
from transformers import AutoModel, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture


class ConvolutionalConfig(PretrainedConfig):
    """Dimensions of a convolutional encoder."""

    model_type = "convolutional"

    vocab_size: int = 30000
    hidden_size: int = 128
    """Width of the embeddings and of every layer."""
    num_hidden_layers: int = 4
    window: int = 5
    """Tokens that a layer reads around each, itself included; an odd number."""
    hidden_dropout: float = 0.1
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False


class GatedConvolution(nn.Module):
    """A gated convolution, its residual and normalisation (Dauphin et al. 2017, eq. 1)."""

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        width = config.hidden_size
        self.convolution = nn.Conv1d(width, 2 * width, config.window, padding=config.window // 2)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """[B, L, H] of `states` [B, L, H]; where `mask` [B, L, 1] is 0 there is padding, which is read as zeros."""
        inputs = states if mask is None else states * mask
        gated = glu(self.convolution(inputs.transpose(1, 2)), dim=1).transpose(1, 2)
        return cast("Tensor", self.norm(states + self.dropout(gated)))


class ConvolutionalPreTrainedModel(AttentionFreeModel):
    """Base class of the network: configuration, names and weight initialisation."""

    config_class = ConvolutionalConfig
    base_model_prefix = "convolutional"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Embeddings N(0, initializer_range); convolutions N(0, √(4 / inputs of an output)), of which a gate at one
        half leaves the variance (Gehring et al. 2017, appendix A)."""
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.initializer_range)
        elif isinstance(module, nn.Conv1d):
            init.normal_(module.weight, std=(4 / (module.in_channels * module.kernel_size[0])) ** 0.5)
            assert module.bias is not None
            init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)


class ConvolutionalModel(ConvolutionalPreTrainedModel):
    """The backbone. Padding on the right is read as zeros, as what lies beyond a row without padding."""

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.norm = nn.LayerNorm(config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.layers = nn.ModuleList(GatedConvolution(config) for _ in range(config.num_hidden_layers))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """Run on `input_ids` [B, L]; the first of `hidden_states` is what the first layer reads."""
        states = self.dropout(self.norm(self.embeddings(input_ids)))
        mask = None if attention_mask is None else attention_mask.unsqueeze(-1).to(states.dtype)
        hidden_states = [states]
        for layer in self.layers:
            states = layer(states, mask)
            hidden_states.append(states)
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=tuple(hidden_states) if output_hidden_states else None
        )


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(ConvolutionalConfig, {AutoModel: ConvolutionalModel})
