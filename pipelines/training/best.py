"""The weights that validated best: kept in memory, and in every checkpoint, so that one digest vouches for both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytorch_lightning as lightning

if TYPE_CHECKING:
    from torch import Tensor

    from pipelines.distributions import Distribution


class BestWeights(lightning.Callback):
    """Takes a copy of the module's weights whenever `monitor` is higher than ever before.

    A file of their own could be damaged, or lost, while the checkpoint that says how good they were is whole; training would
    then end with other weights than it validated. Every rank holds the copy, in main memory.
    """

    def __init__(self, monitor: str, distribution: Distribution) -> None:
        self.monitor, self.distribution = monitor, distribution
        self.score: float | None = None
        self.weights: dict[str, Tensor] = {}

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        score = float(trainer.callback_metrics[self.monitor])
        if self.score is None or score > self.score:
            self.score = -math.inf if math.isnan(score) else score
            whole = self.distribution.whole(pl_module)
            self.weights = {name: tensor.detach().cpu().clone() for name, tensor in whole.items()}

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "weights": self.weights}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.score, self.weights = state_dict["score"], state_dict["weights"]
