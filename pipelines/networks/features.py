"""A network that is read by another one: its states at the words of that one's rows.

Shapes: B rows of L tokens, which hold the same text as rows of S tokens of the network that is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, Self

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel

from pipelines import networks
from pipelines.networks.backbone_with_head import CACHING_ARGUMENTS
from pipelines.networks.scalar_mix import ScalarMix


class FeatureReader(nn.Module):
    """An encoder, the layers that are read of it, and how they become one vector for each word.

    Args:
        settings: `config` of the encoder, `layers`, `subwords`, `trains` and `dropout` as in a recipe, `widths` of all
            its layers, and `length`, the number of tokens in its longest row.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        networks.register()
        self.encoder = build_encoder(settings["config"])
        self.layers, self.subwords, self.trains = settings["layers"], settings["subwords"], bool(settings["trains"])
        widths: list[int] = settings["widths"]
        self.mix = ScalarMix(len(widths) - 1) if self.layers == "mix" else None
        one = {"mix": 0, "top": -1}.get(self.layers, self.layers)
        self.width = widths[one] if isinstance(one, int) else sum(widths)
        self.dropout = nn.Dropout(settings["dropout"])
        self._stateless = {
            name: False for name in CACHING_ARGUMENTS if name in signature(self.encoder.forward).parameters
        }
        if not self.trains:
            self.encoder.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of all but a frozen encoder, which stays without dropout."""
        super().train(mode)
        if not self.trains:
            self.encoder.eval()
        return self

    def states(self, ids: Tensor, mask: Tensor, words: Tensor) -> tuple[Tensor, ...]:
        """The layers that are read, [B, L, width] each: `ids` and `mask` [B, S], `words` [B, L, 2] as in a batch.

        Zero where a token has no word there.
        """
        longest = int(mask.sum(1).max())
        ids, mask = ids[:, :longest], mask[:, :longest]
        with torch.set_grad_enabled(self.trains and torch.is_grad_enabled()):
            outputs = self.encoder(ids, attention_mask=mask, output_hidden_states=True, **self._stateless)
            return tuple(at_words(layer, words, self.subwords) for layer in layers_of(outputs, self.layers))

    def combine(self, states: tuple[Tensor, ...]) -> Tensor:
        """[B, L, width]: the layers of `states` as one vector for each token, after dropout."""
        # those that were kept are in half precision
        states = tuple(state.float() for state in states)
        result: Tensor = self.dropout(self.mix(states) if self.mix is not None else torch.cat(states, dim=-1))
        return result


def build_encoder(config: Mapping[str, Any]) -> Any:
    """A new network of `config`, the dictionary of a configuration, without a pooler, which nothing would read."""
    encoder = AutoModel.from_config(AutoConfig.for_model(**config), attn_implementation="eager")
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler = None
    return encoder


def layers_of(outputs: Any, layers: str | int) -> tuple[Tensor, ...]:
    """The layers [B, S, width] that `layers` names, of an encoder's `outputs` with all hidden states."""
    if layers == "top":
        return (outputs.last_hidden_state,)
    if isinstance(layers, int):
        return (outputs.hidden_states[layers],)
    return tuple(outputs.hidden_states)


def at_words(states: Tensor, words: Tensor, subwords: str) -> Tensor:
    """[B, L, width]: of `states` [B, S, width], the first or the mean of the tokens from `words[..., 0]` to
    `words[..., 1]`; 0 where these are −1."""
    first, last = words[..., 0], words[..., 1]
    if subwords == "first":
        return states.take_along_dim(first.clamp(min=0).unsqueeze(-1), 1) * (first >= 0).unsqueeze(-1)
    tokens = torch.arange(states.shape[1], device=states.device)
    inside = ((tokens >= first.unsqueeze(-1)) & (tokens <= last.unsqueeze(-1)) & (first >= 0).unsqueeze(-1)).to(states)
    return inside @ states / inside.sum(-1, keepdim=True).clamp(min=1)
