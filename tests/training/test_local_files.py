"""Checkpoints in local files are those that Lightning would write."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from lightning_fabric.plugins.io.torch_io import TorchCheckpointIO

from pipelines.training.local_files import LocalFiles

STATE = {"weights": {"w": torch.arange(6.0)}, "global_step": 3}


def test_a_checkpoint_is_read_as_lightning_reads_its_own(tmp_path: Path) -> None:
    LocalFiles().save_checkpoint(STATE, tmp_path / "ours")
    TorchCheckpointIO().save_checkpoint(STATE, tmp_path / "lightnings")
    for name in ("ours", "lightnings"):
        found = LocalFiles().load_checkpoint(tmp_path / name, weights_only=True)
        assert found["global_step"] == 3 and torch.equal(found["weights"]["w"], STATE["weights"]["w"])  # type: ignore[index]


def test_a_full_disk_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="No space left"):
        LocalFiles().save_checkpoint(STATE, "/dev/full")
