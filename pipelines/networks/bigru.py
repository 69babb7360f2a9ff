"""Gated recurrent units in both directions over words, above embeddings of their own, the states of other networks, or
both (Cho et al. 2014, arXiv:1406.1078, §2.3; as an encoder of sentences: Subramanian et al. 2018, arXiv:1804.00079)."""

from __future__ import annotations

import torch
from torch import nn
from transformers import AutoModel
from transformers import initialization as init

from pipelines.networks.attention_free import register_architecture
from pipelines.networks.bilstm import BilstmConfig, BilstmModel


class BigruConfig(BilstmConfig):
    """Dimensions of a bidirectional GRU, and the networks that it reads."""

    model_type = "bigru"


class BigruModel(BilstmModel):
    """The backbone: a `BilstmModel` whose layers are GRUs. Padding on the right affects no other token."""

    config_class = BigruConfig
    base_model_prefix = "bigru"

    def __init__(self, config: BigruConfig) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList(
            nn.GRU(layer.input_size, layer.hidden_size, batch_first=True, bidirectional=True)
            for layer in self.layers
            if isinstance(layer, nn.LSTM)
        )
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """As a bidirectional LSTM: GRUs in ± 1 / √width."""
        if isinstance(module, nn.GRU):
            bound = module.hidden_size**-0.5
            for weights in module.parameters():
                init.uniform_(weights, -bound, bound)
        else:
            super()._init_weights(module)


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(BigruConfig, {AutoModel: BigruModel})
