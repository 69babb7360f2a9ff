"""Every parameter trains, with linear warm-up and decay (Devlin et al. 2018, appendix A.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.strategies import Strategy

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Full(Strategy, name="full"):
    """One rate for all parameters; weight decay on matrices only, not on biases and normalisation gains."""

    paper = "arXiv:1810.04805"

    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the steps in which the rate rises linearly from 0 to its peak; then it falls linearly to 0."""

    def groups(self, network: PreTrainedModel, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
        return [
            {"params": [p for p in trained if p.ndim > 1], "lr": lr, "weight_decay": weight_decay},
            {"params": [p for p in trained if p.ndim <= 1], "lr": lr, "weight_decay": 0.0},
        ]

    def factor(self, step: int, total: int) -> float:
        rise = round(self.warmup * total)
        if step < rise:
            return (step + 1) / rise
        return max(0.0, (total - step) / max(1, total - rise))
