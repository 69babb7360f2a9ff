"""Checkpoints in local files are those that Lightning would write."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
import torch
from lightning_fabric.plugins.io.torch_io import TorchCheckpointIO

from pipelines.training.checkpoints.local_files import LocalCheckpointIO

STATE = {"weights": {"w": torch.arange(6.0)}, "global_step": 3}


def test_a_checkpoint_is_read_as_lightning_reads_its_own(tmp_path: Path) -> None:
    LocalCheckpointIO().save_checkpoint(STATE, tmp_path / "ours")
    TorchCheckpointIO().save_checkpoint(STATE, tmp_path / "lightnings")
    for name in ("ours", "lightnings"):
        found = LocalCheckpointIO().load_checkpoint(tmp_path / name, weights_only=True)
        assert found["global_step"] == 3 and torch.equal(found["weights"]["w"], STATE["weights"]["w"])


@pytest.mark.parametrize("numbers", [6, 4_000_000], ids=["at its end", "in its midst"])
def test_a_full_disk_is_an_error_of_the_system(numbers: int) -> None:
    with pytest.raises(OSError, match="No space left"):
        LocalCheckpointIO().save_checkpoint({"weights": torch.zeros(numbers)}, "/dev/full")


def test_what_cannot_be_saved_is_torchs_own_error(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="pickle"):
        LocalCheckpointIO().save_checkpoint({"weights": lambda: None}, tmp_path / "checkpoint")


def test_a_checkpoint_is_not_held_a_second_time(tmp_path: Path) -> None:
    state = {f"weights.{number}": torch.zeros(1_000_000) for number in range(8)}
    tracemalloc.start()
    try:
        LocalCheckpointIO().save_checkpoint(state, tmp_path / "checkpoint")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "checkpoint").stat().st_size > 32_000_000
    assert peak < 2_000_000
