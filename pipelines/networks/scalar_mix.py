"""A learned mixture of a body's layers in place of its top one (Peters et al. 2018, equation 1)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.errors import RecipeError


class ScalarMix(nn.Module):
    """γ · Σⱼ sⱼ · hⱼ over the embeddings and the layers of a body, with s = softmax(w). Equal shares when new.

    Args:
        layers: L; there are L + 1 states to mix, each [B, L, H].
    """

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(layers + 1))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, states: tuple[Tensor, ...]) -> Tensor:
        if len(states) != len(self.weights) or any(state.size(-1) != states[0].size(-1) for state in states):
            shapes = ", ".join(str(tuple(state.shape)) for state in states)
            raise RecipeError(
                f"strategy frozen: the {len(self.weights)} layers of this body cannot be mixed, their states have the "
                f"shapes {shapes}; use features: top"
            )
        shares = self.weights.softmax(0)
        mixed: Tensor = self.gamma * sum(
            (share * state for share, state in zip(shares[1:], states[1:], strict=True)), shares[0] * states[0]
        )
        return mixed

    def attach(self, body: nn.Module) -> None:
        """From now on `body` says the mixture as its `last_hidden_state`, whoever calls it."""
        # bound methods, so that a copy of the network mixes with the copy of this module
        body.register_forward_pre_hook(self._ask_for_all, with_kwargs=True)
        body.register_forward_hook(self._replace_top)

    def _ask_for_all(self, _: nn.Module, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**named, "output_hidden_states": True}

    def _replace_top(self, _: nn.Module, __: Any, said: Any) -> Any:
        said.last_hidden_state = self(said.hidden_states)
        return said
