"""Weights of a model folder: safetensors, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError

if TYPE_CHECKING:
    from torch import Tensor


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Load the tensors in `folder` by name. RecipeError for anything but a valid safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    if not path.exists():
        raise RecipeError(
            f"{folder}: no model.safetensors; only safetensors are read (a pickled checkpoint can execute code); "
            "convert it "
            "with save_pretrained first"
        )
    try:
        weights: dict[str, Tensor] = load_file(path)
    except SafetensorError as error:
        raise RecipeError(f"{path}: damaged or not a safetensors file ({error})") from None
    return weights
