"""Scalar mix: a learned weighted sum of a backbone's layers instead of its top layer (Peters et al. 2018, equation
1)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.errors import RecipeError


class ScalarMix(nn.Module):
    """γ · Σⱼ sⱼ · hⱼ over the embeddings and the layers of a backbone, with s = softmax(w). Initially equal shares.

    Args:
        layers: number of layers; there are layers + 1 hidden states to mix, each [B, L, H].
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers + 1))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, states: tuple[Tensor, ...]) -> Tensor:
        if len(states) != len(self.weights) or any(state.size(-1) != states[0].size(-1) for state in states):
            shapes = ", ".join(str(tuple(state.shape)) for state in states)
            raise RecipeError(
                f"strategy frozen: the {len(self.weights)} layers of this backbone cannot be mixed, their states have "
                f"the shapes {shapes}; use features: top"
            )
        shares = self.weights.softmax(0)
        mixed: Tensor = self.gamma * sum(
            (share * state for share, state in zip(shares[1:], states[1:], strict=True)), shares[0] * states[0]
        )
        return mixed

    def attach(self, backbone: nn.Module) -> None:
        """Register hooks on `backbone` that replace its `last_hidden_state` by the mix."""
        # bound methods, so that a deep copy of the network uses the copy of this module
        backbone.register_forward_pre_hook(self._request_hidden_states, with_kwargs=True)
        backbone.register_forward_hook(self._replace_top)

    def _request_hidden_states(self, _: nn.Module, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**named, "output_hidden_states": True}

    def _replace_top(self, _: nn.Module, __: Any, outputs: Any) -> Any:
        outputs.last_hidden_state = self(outputs.hidden_states)
        return outputs
