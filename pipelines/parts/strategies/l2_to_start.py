"""L2-SP: a quadratic penalty on the distance to the initial weights of a stage (Li et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.parts.strategies import Decision, Strategy

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class L2ToStart(Strategy, name="l2_to_start"):
    """Add α/2 · ‖w − w₀‖² over the backbone and β/2 · ‖w‖² over the head to the loss (Li et al. 2018, §3, L2-SP).

    w₀ are the initial weights of the stage. The sums are over the parameters that train at a step: for the others the
    terms are constant.
    """

    paper = "arXiv:1802.01483"
    decides = frozenset({Decision.HOLD})

    alpha: float = Field(0.1, ge=0)
    """α: penalty on the distance of the backbone's weights to their initial values, in units of the loss."""
    beta: float = Field(0.01, ge=0)
    """β: penalty on the size of the head's weights, in units of the loss."""

    def begin(self, network: PreTrainedModel) -> Any:
        pretrained = {id(parameter) for parameter in network.base_model.parameters()}
        return {
            name: parameter.detach().clone()
            for name, parameter in network.named_parameters()
            if id(parameter) in pretrained
        }

    def penalty(self, network: PreTrainedModel, initial: Any) -> dict[str, Tensor]:
        moved, new = [], []
        for name, parameter in network.named_parameters():
            if parameter.requires_grad and name in initial:
                moved.append((parameter - initial[name]).square().sum())
            elif parameter.requires_grad:
                new.append(parameter.square().sum())
        terms: dict[str, Tensor] = {}
        for label, weight, squares in (("l2_to_start", self.alpha, moved), ("l2_of_head", self.beta, new)):
            if squares and weight:
                terms[label] = weight / 2 * sum(squares[1:], squares[0])
        return terms
