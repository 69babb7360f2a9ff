"""Checkpoints that are whole or absent, verified by their digest, the newest few kept.

    checkpoints = Checkpoints(scratch / "checkpoints", log)
    checkpoints.write(trainer)
    checkpoints.newest()                # the newest undamaged one; damaged ones are skipped with a warning

A checkpoint is called `step-000000400-<sha256>.ckpt`. It appears by one rename, and the digest in its name covers its
content and the metrics written before it. The metrics are not stored inside: each checkpoint would then be larger than
the one before.
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

KEEP = 2
"""Number of checkpoints that are kept: the newest, and the one before in case the newest is damaged."""
_NAME = re.compile(r"step-(\d{9})-([0-9a-f]{64})\.ckpt")

log = logging.getLogger("cursus.training")


class Checkpoints:
    """The checkpoints of one job, in a separate folder; they also certify its `metrics`."""

    def __init__(self, folder: Path, metrics: MetricsLog, keep: int = KEEP) -> None:
        self.folder, self.metrics, self.keep = folder, metrics, keep
        self.passed_over: list[str] = []
        """Descriptions of the damaged checkpoints that `newest` skipped."""

    def write(self, trainer: lightning.Trainer) -> None:
        """Write the whole state of training, flush it to disk, then rename it; deletes all but the newest `keep`.

        Every rank takes part, and rank 0 writes. Raises OSError when the disk is full: earlier checkpoints are
        untouched.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / "unfinished"
        if trainer.is_global_zero:
            _remove(temporary)  # left by an attempt that ended while writing
        trainer.strategy.barrier()
        trainer.save_checkpoint(temporary)
        if trainer.is_global_zero:
            self._publish(temporary, trainer.global_step)
        # ranks that must stop exit after this; if one exited while rank 0 still writes, the launcher would end rank 0
        # too
        trainer.strategy.barrier()

    def _publish(self, written: Path, step: int) -> None:
        for part in _files(written):
            flush(part)
        os.replace(
            written, self.folder / f"step-{step:09d}-{_combined(_digest(written), self.metrics.flushed_digest())}.ckpt"
        )
        for old in self._all()[self.keep :]:
            _remove(old)

    def newest(self) -> Path | None:
        """The newest undamaged checkpoint; None where there is none.

        Damaged ones, and those whose metrics were changed, are deleted and added to `passed_over`.
        """
        for path in self._all():
            name = _NAME.fullmatch(path.name)
            assert name is not None
            content = _digest(path)
            if any(_combined(content, metrics) == name[2] for metrics in self.metrics.prefix_digests()):
                return path
            self.passed_over.append(f"the checkpoint of step {int(name[1])} is damaged")
            log.warning("%s: %s; continuing from the one before", path, self.passed_over[-1])
            _remove(path)
        return None

    def clear(self) -> None:
        """Delete all checkpoints."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _all(self) -> list[Path]:
        """All checkpoints, newest first."""
        if not self.folder.is_dir():
            return []
        return sorted((path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def _files(checkpoint: Path) -> list[Path]:
    """Files of a checkpoint: one file, or for a sharded network a folder with a file per rank."""
    return sorted(part for part in checkpoint.rglob("*") if part.is_file()) if checkpoint.is_dir() else [checkpoint]


def _digest(checkpoint: Path) -> str:
    if not checkpoint.is_dir():
        return digest_file(checkpoint)
    parts = {part.relative_to(checkpoint).as_posix(): digest_file(part) for part in _files(checkpoint)}
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _combined(content: str, metrics: str) -> str:
    return sha256(f"{content}{metrics}".encode()).hexdigest()


def _remove(checkpoint: Path) -> None:
    if checkpoint.is_dir():
        shutil.rmtree(checkpoint)
    else:
        checkpoint.unlink(missing_ok=True)
