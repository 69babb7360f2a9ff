"""Load a saved classifier as a torch network, from a folder of this project or of transformers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError, RecipeError
from pipelines.models.opening import CONFIG_KEY, open_model
from pipelines.networks.folder import read_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def load_classifier(folder: Path) -> PreTrainedModel:
    """Load the classifier in `folder`: safetensors only, float32, evaluation mode, eager attention.

    DataError when the weights do not match the configuration.
    """
    from transformers import AutoModelForSequenceClassification

    if CONFIG_KEY in read_json(folder / "config.json"):
        try:
            return open_model(folder, "cpu").network
        except RecipeError as error:
            raise DataError(str(error)) from None
    network, loading = load_pretrained(AutoModelForSequenceClassification, folder, "a classifier")
    refuse_mismatched_weights(
        folder, {problem: loading[problem] for problem in ("missing_keys", "mismatched_keys", "unexpected_keys")}
    )
    return network


def load_pretrained(architecture: Any, folder: Path, kind: str) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Load a network with transformers' Auto class `architecture`: safetensors only, float32, evaluation mode, eager
    attention; returns it with transformers' loading info.

    DataError when `folder` cannot be opened as `kind`.
    """
    import torch
    from safetensors import SafetensorError
    from transformers.utils import logging

    logging.disable_progress_bar()
    level = logging.get_verbosity()
    logging.set_verbosity_error()  # mismatched weights are reported by the caller
    try:
        network, loading = architecture.from_pretrained(
            folder,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            dtype=torch.float32,
            attn_implementation="eager",
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise DataError(f"{folder}: cannot be opened as {kind} ({error})") from error
    finally:
        logging.set_verbosity(level)
    return network.eval(), loading


def refuse_mismatched_weights(folder: Path, problems: Mapping[str, Collection[object]]) -> None:
    """Raise DataError for the first of the loading `problems` that transformers reported for `folder`."""
    for problem, keys in problems.items():
        if keys:
            first = min(str(key) for key in keys)
            raise DataError(
                f"{folder}: its weights do not match its configuration, {problem.replace('_', ' ')}: {first}"
            )
