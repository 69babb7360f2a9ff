"""T5's self-attention (Raffel et al. 2020, §2.1) as one function: heads without biases, and a learnt number for each distance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.attention import readable
from pipelines.parts.accelerators.cpu_kernels.dropout import drawn
from pipelines.parts.accelerators.cpu_kernels.heads import Attended, one_function

if TYPE_CHECKING:
    from transformers import PretrainedConfig


class PositionedSelfAttention(nn.Module):
    """Beside a class of transformers with these layers, whose program is T5's. Attention to another text is left to that."""

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
        position_bias: Tensor | None = None, past_key_values: Any = None, **others: Any,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:  # fmt: skip
        """[B, L, H] of `hidden_states` [B, L, I]; the bias on positions [1, heads, L, L], and the weights where somebody may want
        them."""
        layers = self.q, self.k, self.v
        if not (
            key_value_states is None and past_key_values is None
            and (position_bias is not None or self.has_relative_attention_bias)
            and self.dropout < 1 and all(one.bias is None for one in layers)
            and one_function(self, layers, self.key_value_proj_dim, hidden_states, mask, others)
        ):  # fmt: skip
            said: tuple[Tensor, Tensor | None, Tensor | None] = super().forward(
                hidden_states, mask=mask, key_value_states=key_value_states, position_bias=position_bias,
                past_key_values=past_key_values, **others,
            )  # fmt: skip
            return said
        length = hidden_states.shape[1]
        if position_bias is None:
            position_bias = self.compute_bias(length, length, device=hidden_states.device)  # type: ignore[operator]  # of the class beside
        # the layers above are given it as the kernel reads it
        position_bias = readable(position_bias, length)
        context: Tensor = Attended.apply(  # type: ignore[no-untyped-call]  # torch does not type it
            hidden_states, None if mask is None else readable(mask, length), position_bias, self.key_value_proj_dim, self.scaling,
            drawn(self.dropout), *(one.weight for one in layers),
        )  # fmt: skip
        return self.o(context), position_bias, None
