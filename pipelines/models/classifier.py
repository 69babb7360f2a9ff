"""A saved classifier as a torch network, whoever saved it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError, RecipeError
from pipelines.models.opening import RECORD, open_model
from pipelines.networks.folder import read_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def load_classifier(folder: Path) -> PreTrainedModel:
    """The classifier of `folder` in torch: safetensors only, float32, evaluation mode, plain attention.

    Raises DataError when the weights do not fit the configuration.
    """
    from transformers import AutoModelForSequenceClassification

    if RECORD in read_json(folder / "config.json"):
        try:
            return open_model(folder, "cpu").network
        except RecipeError as error:
            raise DataError(str(error)) from None
    network, loading = load_foreign(AutoModelForSequenceClassification, folder, "a classifier")
    refuse_unfit(
        folder, {problem: loading[problem] for problem in ("missing_keys", "mismatched_keys", "unexpected_keys")}
    )
    return network


def load_foreign(architecture: Any, folder: Path, what: str) -> tuple[PreTrainedModel, dict[str, Any]]:
    """A network of transformers' Auto class `architecture`: safetensors only, float32, evaluation mode, plain attention; and
    which of its keys did not fit.

    Raises DataError where `folder` cannot be opened as `what` it should be.
    """
    import torch
    from safetensors import SafetensorError
    from transformers.utils import logging

    logging.disable_progress_bar()
    level = logging.get_verbosity()
    logging.set_verbosity_error()  # what does not fit is told by whoever asked
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
        raise DataError(f"{folder}: cannot be opened as {what} ({error})") from error
    finally:
        logging.set_verbosity(level)
    return network.eval(), loading


def refuse_unfit(folder: Path, problems: Mapping[str, Collection[object]]) -> None:
    """Raise DataError for the first of the `problems` that transformers met when it loaded `folder`."""
    for problem, keys in problems.items():
        if keys:
            first = min(str(key) for key in keys)
            raise DataError(f"{folder}: its weights do not fit its configuration, {problem.replace('_', ' ')}: {first}")
