"""Checkpoints that can be trusted: whole or absent, known by their digest, the newest few kept.

    checkpoints = Checkpoints(scratch / "checkpoints", log)
    checkpoints.write(trainer)
    checkpoints.newest()                # the newest that is undamaged; what is damaged is passed over, loudly

A checkpoint is called `step-000000400-<sha256>.ckpt`: one rename makes it, and the name says what must be in it and in the metrics
that were written before it. They are not in it: each checkpoint would then be larger than the one before.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.lineage.disk import flush
from pipelines.lineage.fingerprint import digest_file
from pipelines.training.metrics_log import MetricsLog

if TYPE_CHECKING:
    import pytorch_lightning as lightning

KEPT = 2
"""The newest checkpoint, and the one before for when it is damaged."""
_NAME = re.compile(r"step-(\d{9})-([0-9a-f]{64})\.ckpt")

log = logging.getLogger("cursus.training")


class Checkpoints:
    """The checkpoints of one job, in a folder of their own, and of what it has told in `metrics`."""

    def __init__(self, folder: Path, metrics: MetricsLog, kept: int = KEPT) -> None:
        self.folder, self.metrics, self.kept = folder, metrics, kept
        self.passed_over: list[str] = []
        """What was wrong with the checkpoints that `newest` did not take."""

    def write(self, trainer: lightning.Trainer) -> None:
        """Write the whole state of training, flush it to disk, then give it its name; older ones than `kept` go.

        Every rank takes part, and the first writes. Raises OSError when the disk is full: the checkpoints before it are
        untouched.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        aside = self.folder / "unfinished"
        if trainer.is_global_zero:
            _remove(aside)  # of an attempt that ended while it wrote
        trainer.strategy.barrier()
        trainer.save_checkpoint(aside)
        if trainer.is_global_zero:
            self._keep(aside, trainer.global_step)
        # ranks that are told to stop end after this: none may while the first still writes, or what started them ends it too
        trainer.strategy.barrier()

    def _keep(self, written: Path, step: int) -> None:
        for part in _files(written):
            flush(part)
        os.replace(written, self.folder / f"step-{step:09d}-{_sealed(_digest(written), self.metrics.seal())}.ckpt")
        for old in self._all()[self.kept :]:
            _remove(old)

    def newest(self) -> Path | None:
        """The newest undamaged checkpoint; None where there is none. Damaged ones are deleted and remembered: those, too, whose
        metrics are no longer what they were."""
        for path in self._all():
            named = _NAME.fullmatch(path.name)
            assert named is not None
            content = _digest(path)
            if any(_sealed(content, seal) == named[2] for seal in self.metrics.seals()):
                return path
            self.passed_over.append(f"the checkpoint of step {int(named[1])} is damaged")
            log.warning("%s: %s; going on from the one before", path, self.passed_over[-1])
            _remove(path)
        return None

    def forget(self) -> None:
        """Delete them all."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _all(self) -> list[Path]:
        """Newest first."""
        if not self.folder.is_dir():
            return []
        return sorted((path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def _files(checkpoint: Path) -> list[Path]:
    """Those of a checkpoint: where the network is divided, a checkpoint is a folder with a file for each rank."""
    return sorted(part for part in checkpoint.rglob("*") if part.is_file()) if checkpoint.is_dir() else [checkpoint]


def _digest(checkpoint: Path) -> str:
    if not checkpoint.is_dir():
        return digest_file(checkpoint)
    parts = {part.relative_to(checkpoint).as_posix(): digest_file(part) for part in _files(checkpoint)}
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _sealed(content: str, metrics: str) -> str:
    return sha256(f"{content}{metrics}".encode()).hexdigest()


def _remove(checkpoint: Path) -> None:
    if checkpoint.is_dir():
        shutil.rmtree(checkpoint)
    else:
        checkpoint.unlink(missing_ok=True)
