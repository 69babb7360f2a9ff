"""T5's self-attention (Raffel et al.

2020, §2.1) as one function: projections without biases, and a learnt relative position bias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.attention import prepare_mask
from pipelines.parts.accelerators.cpu_kernels.dropout import draw_dropout
from pipelines.parts.accelerators.cpu_kernels.self_attention import SelfAttentionFunction, can_fuse

if TYPE_CHECKING:
    from transformers import PretrainedConfig


class FusedT5Attention(nn.Module):
    """Mixin before a transformers class with these layers and the bytecode of T5's attention; cross-attention is left
    to that class."""

    q: nn.Linear
    k: nn.Linear
    v: nn.Linear
    o: nn.Linear
    config: PretrainedConfig
    dropout: float
    scaling: float
    key_value_proj_dim: int
    has_relative_attention_bias: bool

    def forward(
        self, hidden_states: Tensor, mask: Tensor | None = None, key_value_states: Tensor | None = None,
        position_bias: Tensor | None = None, past_key_values: Any = None, **options: Any,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
        """Output [B, L, H] for `hidden_states` [B, L, I], the position bias [1, heads, L, L], and the weights where
        they are requested."""
        layers = self.q, self.k, self.v
        if not (
            key_value_states is None and past_key_values is None
            and (position_bias is not None or self.has_relative_attention_bias)
            and self.dropout < 1 and all(one.bias is None for one in layers)
            and can_fuse(self, layers, self.key_value_proj_dim, hidden_states, mask, options)
        ):  # fmt: skip
            output: tuple[Tensor, Tensor | None, Tensor | None] = super().forward(
                hidden_states, mask=mask, key_value_states=key_value_states, position_bias=position_bias,
                past_key_values=past_key_values, **options,
            )  # fmt: skip
            return output
        length = hidden_states.shape[1]
        if position_bias is None:
            # defined by the replaced class
            position_bias = self.compute_bias(length, length, device=hidden_states.device)  # type: ignore[operator]
        # later layers receive it in the kernel's form
        position_bias = prepare_mask(position_bias, length)
        context: Tensor = SelfAttentionFunction.apply(  # type: ignore[no-untyped-call]  # torch does not type it
            hidden_states, None if mask is None else prepare_mask(mask, length), position_bias, self.key_value_proj_dim,
            self.scaling, draw_dropout(self.dropout), *(one.weight for one in layers),
        )  # fmt: skip
        return self.o(context), position_bias, None
