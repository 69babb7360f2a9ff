"""The weights with the best validation score of a stage."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytorch_lightning as lightning
from pytorch_lightning.callbacks import Callback

from pipelines.errors import StoreError
from pipelines.lineage.disk import atomic_write
from pipelines.lineage.fingerprint import digest_file
from pipelines.parts.distributions import Distribution
from pipelines.training.checkpoints.folder import Checkpoints

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

FILE = "best.safetensors"


class BestWeights(Callback):
    """Writes the weights into `folder` after each validation that improves the score, of those after step `first`.

    Checkpoints record their digest.
    """

    def __init__(
        self, folder: Path, network: PreTrainedModel, distribution: Distribution, monitor: str, first: int = 0
    ) -> None:
        self.path, self.network, self.distribution, self.monitor = folder / FILE, network, distribution, monitor
        self.first = first
        self.score: float | None = None
        self._digest = ""

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        if trainer.global_step < self.first:
            return
        score = float(trainer.callback_metrics[self.monitor])
        if self.score is not None and score <= self.score:
            return
        self.score = score
        weights = self.distribution.full_state_dict(self.network)
        if trainer.is_global_zero:
            self._write(weights)

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "digest": self._digest}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.score, self._digest = state_dict["score"], state_dict["digest"]

    def read(self, checkpoints: Checkpoints) -> dict[str, Tensor]:
        """The best weights of the whole network.

        Raises StoreError where the file is damaged; `checkpoints` are then deleted, so that the next run trains again.
        """
        from safetensors.torch import load_file

        if not self.path.exists() or digest_file(self.path) != self._digest:
            checkpoints.clear()
            raise StoreError(f"{self.path}: damaged since it was written; run again to train this stage from its start")
        return load_file(self.path)

    def _write(self, weights: dict[str, Tensor]) -> None:
        from safetensors.torch import save_file

        with atomic_write(self.path, self.path.with_suffix(".unfinished"), flushed=True) as temporary:
            # cloned: tied weights are one tensor under two names, which safetensors refuses
            save_file({name: value.detach().cpu().contiguous().clone() for name, value in weights.items()}, temporary)
            self._digest = digest_file(temporary)
