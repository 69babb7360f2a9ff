"""A linear map of the top states of a backbone, into the space of another one (Wang et al. 2019, arXiv:1909.06775)."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

MODULE = "state_map"
"""Name of the map in its backbone."""


class StateMap(nn.Module):
    """W · x over the last axis, without a bias; the identity when new.

    Args:
        width: H, size of the last axis of input and output.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width, bias=False)
        nn.init.eye_(self.linear.weight)

    def forward(self, states: Tensor) -> Tensor:
        mapped: Tensor = self.linear(states)
        return mapped

    def attach(self, backbone: nn.Module) -> None:
        """Make the map a part of `backbone`, whose top states [B, L, H] are mapped from then on."""
        setattr(backbone, MODULE, self)
        # a bound method, so that a deep copy of the network uses the copy of this module
        backbone.register_forward_hook(self._map_top)

    def _map_top(self, _: nn.Module, __: Any, outputs: Any) -> Any:
        mapped = self(outputs.last_hidden_state)
        outputs.last_hidden_state = mapped
        if outputs.hidden_states is not None:
            outputs.hidden_states = (*outputs.hidden_states[:-1], mapped)
        return outputs
