"""The point an interrupted stage continues from."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as lightning
from pytorch_lightning.callbacks import Checkpoint

from pipelines.training.checkpoints.folder import Checkpoints
from pipelines.training.loop.module import StageModule
from pipelines.training.loop.stopping import STATUS


class ResumePoint(Checkpoint):
    """Writes the whole state of training once `every` optimizer steps have passed since the last time; and when the ranks have
    agreed to stop (SIGTERM), before it ends them.

    Never between a step and its validation: Lightning takes a validation for done when it resumes there, and early stopping
    and the choice of the best weights would not hear of it. Register it after every callback that listens to validations.
    """

    def __init__(self, checkpoints: Checkpoints, every: int, validate_every: int | None) -> None:
        self.checkpoints, self.every, self.validate_every = checkpoints, every, validate_every
        self._written = 0

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, StageModule)
        pl_module.stop.listen()
        self._written = trainer.global_step

    def on_train_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        assert isinstance(pl_module, StageModule)
        if (batch_idx + 1) % pl_module.cut.accumulated:
            return  # in the middle of a step
        if self.validate_every is None or trainer.global_step % self.validate_every:
            self._write(trainer, pl_module)

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, StageModule)
        self._write(trainer, pl_module)

    def _write(self, trainer: lightning.Trainer, module: StageModule) -> None:
        due = 1 if module.stopping else self.every
        if trainer.global_step - self._written >= due:
            self.checkpoints.write(trainer)
            self._written = trainer.global_step
        if module.stopping:
            raise SystemExit(STATUS)
