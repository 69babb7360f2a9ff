"""Checkpoints that an interrupted stage continues from."""

from __future__ import annotations

from typing import Any

import pytorch_lightning as lightning
from pytorch_lightning.callbacks import Checkpoint

from pipelines.training.checkpoints.folder import Checkpoints
from pipelines.training.loop.module import StageModule
from pipelines.training.loop.stopping import STATUS


class ResumePoint(Checkpoint):
    """Writes the whole state of training every `every` optimizer steps, and before it exits when the ranks have agreed
    to stop.

    Never between a step and its validation: a run that resumes there skips the validation, and early stopping and the
    best weights would miss it. Register this callback after every callback that uses validations.
    """

    def __init__(self, checkpoints: Checkpoints, every: int, validate_every: int | None) -> None:
        self.checkpoints, self.every, self.validate_every = checkpoints, every, validate_every
        self._written = 0

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, StageModule)
        pl_module.stop.install_handler()
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
        if (batch_idx + 1) % pl_module.partition.accumulated:
            return  # in the middle of an optimizer step
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
