"""Base class of the networks of labelled heads: any backbone of the Auto classes, with room for a head on top."""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, PretrainedConfig, PreTrainedModel

from pipelines import networks
from pipelines.errors import RecipeError
from pipelines.networks.channel_embeddings import ARGUMENT
from pipelines.networks.visibility import with_mask

CACHING_ARGUMENTS = ("use_cache", "use_mems")
"""Arguments that make a backbone keep the state for a next segment; labelled examples are never continued."""
DROPOUTS = (
    "classifier_dropout",
    "hidden_dropout_prob",
    "resid_pdrop",
    "summary_last_dropout",
    "output_dropout",
    "dropout",
)
"""Configuration keys of an architecture's dropout before the head; the first that is set is used."""
DEFAULT_DROPOUT = 0.1


class BackboneWithHead(PreTrainedModel):
    """A backbone, with room for a head on top. The backbone's weights have the names that plain transformers gives
    them.

    A network is a function of its configuration alone; it has the backbone's `pooler` if it reads that. Raises
    RecipeError for an encoder-decoder, where neither half
    alone is the model.
    """

    config_class = PretrainedConfig
    supports_gradient_checkpointing = False
    _supports_sdpa = True
    _supports_attention_backend = True

    def __init__(self, config: PretrainedConfig, pooler: bool = False) -> None:
        super().__init__(config)
        if getattr(config, "is_encoder_decoder", False):
            raise RecipeError(
                f"head: {config.model_type} is an encoder-decoder, and this head needs a single stack of layers; use a "
                "bidirectional or causal backbone, or the head text_to_text"
            )
        networks.register()
        backbone = AutoModel.from_config(config)
        if getattr(backbone, "pooler", None) is not None and not pooler:
            backbone.pooler = None  # unused; kept, its weights would never train
        self.base_model_prefix = backbone.base_model_prefix
        setattr(self, self.base_model_prefix, backbone)
        self._accepted_arguments = frozenset(signature(backbone.forward).parameters)

    def run_backbone(self, inputs: dict[str, Tensor], output_hidden_states: bool = False) -> Any:
        """Outputs of the backbone for `inputs`, named as its arguments: `last_hidden_state` [B, L, H] and others.

        Inputs that the backbone does not accept are dropped: the tokenizer may provide token types that it does not
        use. `channels` are for the embeddings that `channel_embeddings` attaches; `visible` bool [B, L, L] takes the
        place of the attention mask.
        """
        inputs = with_mask(inputs, self.config)
        accepted = {name: value for name, value in inputs.items() if name in {ARGUMENT, *self._accepted_arguments}}
        stateless = {name: False for name in CACHING_ARGUMENTS if name in self._accepted_arguments}
        return self.base_model(**accepted, **stateless, output_hidden_states=output_hidden_states)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Do nothing: the backbone is initialised by its architecture, the layers on top in their `__init__`."""


def linear(inputs: int, outputs: int, config: PretrainedConfig) -> nn.Linear:
    """A linear layer on top of a backbone of `config`, initialised like the backbone's own layers, with zero bias."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=getattr(config, "initializer_range", 0.02))
    nn.init.zeros_(layer.bias)
    return layer


def dropout_of(config: PretrainedConfig) -> float:
    """Dropout rate of the architecture before its head."""
    stated = (getattr(config, name, None) for name in DROPOUTS)
    return float(next((value for value in stated if value is not None), DEFAULT_DROPOUT))
