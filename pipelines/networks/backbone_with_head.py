"""What the networks under the labelled heads share: any body of the Auto classes, under its own names."""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, PretrainedConfig, PreTrainedModel

from pipelines import networks
from pipelines.errors import RecipeError

CONTINUING = ("use_cache", "use_mems")
"""Arguments that make a body keep what a next row would need; a labelled example is never continued."""
DROPOUTS = (
    "classifier_dropout",
    "hidden_dropout_prob",
    "resid_pdrop",
    "summary_last_dropout",
    "output_dropout",
    "dropout",
)
"""Configuration keys that hold an architecture's dropout above its body; the first that is set is meant."""
USUAL_DROPOUT = 0.1


class BackboneWithHead(PreTrainedModel):
    """A body and room for a head above it. The body's weights carry the names that plain transformers gives them.

    A network is a function of its configuration alone. Raises RecipeError for an encoder with a decoder, of which neither
    half alone is the model.
    """

    config_class = PretrainedConfig
    supports_gradient_checkpointing = False
    _supports_sdpa = True
    _supports_attention_backend = True

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        if getattr(config, "is_encoder_decoder", False):
            raise RecipeError(
                f"head: a {config.model_type} body encodes one text and decodes another, and this head reads one row of "
                "states; give it a body that is bidirectional or causal, or the head text_to_text"
            )
        networks.register()
        body = AutoModel.from_config(config)
        if getattr(body, "pooler", None) is not None:
            body.pooler = None  # trained on nothing we use; kept, it would be a weight that never learns
        self.base_model_prefix = body.base_model_prefix
        setattr(self, self.base_model_prefix, body)
        self._takes = frozenset(signature(body.forward).parameters)

    def read(self, inputs: dict[str, Tensor], output_hidden_states: bool = False) -> Any:
        """What the body says of `inputs`, by Hugging Face's argument names: `last_hidden_state` [B, L, H] and the rest.

        A tokenizer may tell two texts apart for a body that does not: what it has no argument for is not handed on.
        """
        given = {name: value for name, value in inputs.items() if name in self._takes}
        stateless = {name: False for name in CONTINUING if name in self._takes}
        return self.base_model(**given, **stateless, output_hidden_states=output_hidden_states)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Nothing: the body initialises itself as its architecture does, the layers above it in their `__init__`."""


def linear(inputs: int, outputs: int, config: PretrainedConfig) -> nn.Linear:
    """A new linear layer above a body of `config`, random as the body's own are, its bias zero."""
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=getattr(config, "initializer_range", 0.02))
    nn.init.zeros_(layer.bias)
    return layer


def dropout_of(config: PretrainedConfig) -> float:
    """The share of elements that the architecture drops above its body."""
    stated = (getattr(config, name, None) for name in DROPOUTS)
    return float(next((value for value in stated if value is not None), USUAL_DROPOUT))
