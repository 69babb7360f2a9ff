"""A quadratic penalty for leaving the weights a stage starts from (Li et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.parts.strategies import Decision, Strategy

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class L2ToStart(Strategy, name="l2_to_start"):
    """Adds α/2 · ‖w − w₀‖² over the body and β/2 · ‖w‖² over what lies outside it (Li et al. 2018, §3, L2-SP).

    w₀ are the weights that the stage starts from. Only parameters that train at a step are summed: for the others the
    terms are constant.
    """

    paper = "arXiv:1802.01483"
    decides = frozenset({Decision.HOLD})

    alpha: float = Field(0.1, ge=0)
    """α: pull of the body's weights to their start, in units of the loss."""
    beta: float = Field(0.01, ge=0)
    """β: pull of new weights to zero, in units of the loss."""

    def begin(self, network: PreTrainedModel) -> Any:
        body = {id(parameter) for parameter in network.base_model.parameters()}
        return {
            name: parameter.detach().clone() for name, parameter in network.named_parameters() if id(parameter) in body
        }

    def penalty(self, network: PreTrainedModel, remembered: Any) -> dict[str, Tensor]:
        moved, new = [], []
        for name, parameter in network.named_parameters():
            if parameter.requires_grad and name in remembered:
                moved.append((parameter - remembered[name]).square().sum())
            elif parameter.requires_grad:
                new.append(parameter.square().sum())
        terms: dict[str, Tensor] = {}
        for label, weight, squares in (("l2_to_start", self.alpha, moved), ("l2_of_head", self.beta, new)):
            if squares and weight:
                terms[label] = weight / 2 * sum(squares[1:], squares[0])
        return terms
