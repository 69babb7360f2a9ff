"""How Lightning writes a checkpoint here: into a local file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import torch
from lightning_fabric.plugins.io.torch_io import TorchCheckpointIO


class LocalFiles(TorchCheckpointIO):
    """Checkpoints as torch.save writes them. Whoever writes one gives it its name when it is whole (`checkpoints`).

    Lightning's own way asks before each whether the path is an object store's, which imports the clients of those that are
    installed, and every time anew looks for those that are not: 30 ms a checkpoint.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any | None = None) -> None:
        """Raises OSError when the disk is full."""
        content = io.BytesIO()  # torch's own writer makes a RuntimeError of a full disk
        torch.save(checkpoint, content)
        with Path(path).open("wb") as file:
            file.write(content.getbuffer())
