"""The point an interrupted stage continues from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
from pytorch_lightning.callbacks import Checkpoint


class ResumePoint(Checkpoint):
    """Writes the whole state of training to `path`, in one rename, once `every` optimizer steps have passed since the last time.

    Never between a step and its validation: Lightning takes a validation for done when it resumes there, and early stopping
    and the choice of the best weights would not hear of it. Register it after every callback that listens to validations.
    """

    def __init__(self, path: Path, every: int, validate_every: int | None) -> None:
        self.path, self.every, self.validate_every = path, every, validate_every
        self._written = 0

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self._written = trainer.global_step

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, *arguments: Any, **keywords: Any
    ) -> None:
        if self.validate_every is None or trainer.global_step % self.validate_every:
            self._write(trainer)

    def on_validation_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        self._write(trainer)

    def _write(self, trainer: lightning.Trainer) -> None:
        if trainer.global_step - self._written >= self.every:
            trainer.save_checkpoint(self.path)
            self._written = trainer.global_step
