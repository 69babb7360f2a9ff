"""Checks of untrusted model folders before any file in them is opened.

Only safetensors and JSON are read, which cannot contain code. A pickle executes code when it is read, and so does a
module that a configuration refers to. Such a folder is refused as a whole, even if it also contains safetensors,
because the next tool might read what this one does not. The checks are in `pipelines.safety.model_folders`: they decide
what is refused and never what is computed, so no identity depends on them.
"""

from __future__ import annotations

from pathlib import Path

from pipelines.errors import RecipeError
from pipelines.safety.model_folders import UnsafeFolderError, check_model_folder
from pipelines.safety.model_folders.tensor_files import safetensors_header

__all__ = ["WEIGHTS", "refuse_unsafe", "safetensors_header"]

WEIGHTS = "model.safetensors"


def refuse_unsafe(folder: Path) -> None:
    """Raise RecipeError, with the file and the reason, for a folder that must not be opened."""
    try:
        check_model_folder(folder)
    except UnsafeFolderError as error:
        raise RecipeError(str(error)) from None
