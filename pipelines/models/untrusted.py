"""Checks of untrusted model folders before any file in them is opened.

Only safetensors and JSON are read, which cannot contain code. A pickle executes code when it is read, and so does a
module that a configuration refers to. Such a folder is refused as a whole, even if it also contains safetensors,
because the next tool might read what this one does not. The checks are in `pipelines.safety.model_folders`: they decide
what is refused and never what is computed, so no identity depends on them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.safety.model_folders import UnsafeFolderError, check_model_folder
from pipelines.safety.model_folders.tensor_files import checked_tensors, safetensors_header

if TYPE_CHECKING:
    from torch.nn import Module

__all__ = ["WEIGHTS", "refuse_larger_network", "refuse_unsafe", "safetensors_header"]

WEIGHTS = "model.safetensors"
FACTOR = 2
"""How many times the weights in its folder a network may have: parts that a folder lacks are initialised."""
SLACK = 2**20
"""Weights that any network may have beyond that."""


def refuse_unsafe(folder: Path) -> None:
    """Raise RecipeError, with the file and the reason, for a folder that must not be opened."""
    try:
        check_model_folder(folder)
    except UnsafeFolderError as error:
        raise RecipeError(str(error)) from None


def refuse_larger_network(folder: Path, network: Module) -> None:
    """Raise RecipeError if `network`, of the configuration in `folder` and on torch's meta device, has far more weights
    than the safetensors in `folder` hold."""
    files = sorted(folder.glob("*.safetensors"))
    held = sum(entry.capacity for path in files for entry in checked_tensors(path).values())
    taken = sum(parameter.numel() for parameter in network.parameters())
    if taken > FACTOR * held + SLACK:
        raise RecipeError(
            f"{folder / 'config.json'}: its network has {taken:,} weights, and the safetensors in the folder hold "
            f"{held:,} at most; give a folder whose configuration and weights belong together"
        )
