"""Every parameter trains, with linear warm-up and decay (Devlin et al. 2018, appendix A.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.strategies import Strategy

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Full(Strategy, name="full"):
    """One rate for the body, one for the head; weight decay on matrices only, not on biases and normalisation gains."""

    paper = "arXiv:1810.04805"

    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of the steps in which the rate rises linearly from 0 to its peak; then it falls linearly to 0."""
    head_rate: float = Field(1.0, gt=0)
    """Multiple of the rate for weights outside the body: a new head has further to go than a pre-trained body."""

    def groups(self, network: PreTrainedModel, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        body = network.base_model_prefix + "."
        groups = []
        for inside, rate in ((True, lr), (False, lr * self.head_rate)):
            trained = [
                parameter
                for name, parameter in network.named_parameters()
                if parameter.requires_grad and name.startswith(body) is inside
            ]
            groups += [
                {"params": [p for p in trained if p.ndim > 1], "lr": rate, "weight_decay": weight_decay},
                {"params": [p for p in trained if p.ndim <= 1], "lr": rate, "weight_decay": 0.0},
            ]
        return [group for group in groups if group["params"]]

    def factor(self, step: int, total: int) -> float:
        rise = round(self.warmup * total)
        if step < rise:
            return (step + 1) / rise
        return max(0.0, (total - step) / max(1, total - rise))
