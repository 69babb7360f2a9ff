"""Projected attention layers, which the strategy `projected_attention` adds to each line (Stickland & Murray 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertSelfAttention

from pipelines.networks.line_modules import ModulesOfLine

if TYPE_CHECKING:
    from transformers import PretrainedConfig

PASSED_ON = ("documents",)
"""Arguments of a layer, besides its states and its mask, that say what a token attends to."""


class ProjectedAttention(ModulesOfLine):
    """gelu(V_D · MH(V_E · h)) for the input h [B, L, H] of each layer, added before the layer's last normalisation.

    V_E and V_D are those of all layers, MH is multi-head attention of each layer without an output projection. A token
    attends to what it attends to in the layer itself.

    Args:
        config: the backbone's own, which says how it attends at any time.
        size: width of the attention; a multiple of `heads`.
        layers: (layer, the dropout module that ends its last sub-layer) of each layer.
    """

    def __init__(
        self, config: PretrainedConfig, size: int, heads: int, layers: Iterable[tuple[nn.Module, nn.Module]]
    ) -> None:
        super().__init__()
        self._config = config
        self._inputs: tuple[Tensor, Tensor | None, dict[str, Any]] | None = None
        inner = BertConfig(
            hidden_size=size,
            num_attention_heads=heads,
            attention_probs_dropout_prob=getattr(config, "attention_probs_dropout_prob", 0.0),
        )
        self.down, self.up = nn.Linear(config.hidden_size, size), nn.Linear(size, config.hidden_size)
        attention = []
        for number, (layer, end) in enumerate(layers):
            attention.append(BertSelfAttention(inner))
            layer.register_forward_pre_hook(self._receive, with_kwargs=True)
            end.register_forward_hook(partial(self._add, number))
        self.attention = nn.ModuleList(attention)
        for linear in self.modules():
            if isinstance(linear, nn.Linear):
                nn.init.normal_(linear.weight, std=config.initializer_range)
                nn.init.zeros_(linear.bias)

    def _receive(self, layer: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Pre-hook of a layer: keep its states and what says which tokens attend to which."""
        if not self.computes:
            return
        given = {**dict(zip(("hidden_states", "attention_mask"), arguments, strict=False)), **named}
        others = {name: given[name] for name in PASSED_ON if name in given}
        self._inputs = given["hidden_states"], given.get("attention_mask"), others

    def _add(self, number: int, end: nn.Module, inputs: object, output: Tensor) -> Tensor:
        """Hook of the end of a layer's last sub-layer: add what this line has beside the layer."""
        if not self.computes:
            return output
        assert self._inputs is not None
        (states, mask, others), self._inputs = self._inputs, None
        attention = cast("BertSelfAttention", self.attention[number])
        # the function that the backbone attends with, which a layout may have changed since
        attention.config._attn_implementation = self._config._attn_implementation
        attended, _ = attention(self.down(states), mask, **others)
        added: Tensor = functional.gelu(self.up(attended))
        return output + added
