"""Open the backbone of a model folder, whatever head is on it: a stage's result, or any encoder of transformers."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pipelines.errors import RecipeError
from pipelines.models.classifier import load_pretrained
from pipelines.models.opening import ModelRecord, open_config, open_lines, open_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

NOT_STATES = ("pooler.*", "*.position_ids")
"""Weights on which no hidden state depends, so that a folder may lack them."""


def open_backbone(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """The backbone in `folder`, frozen, in eval mode, on the CPU, and its tokenizer.

    Raises RecipeError or DataError for a folder that is no model, or lacks weights of its backbone.
    """
    from transformers import AutoModel

    if ModelRecord.read(open_config(folder)) is not None:
        opened = open_lines(folder, "cpu")
        return cast("PreTrainedModel", opened.network.base_model), opened.tokenizer
    network, loaded = load_pretrained(AutoModel, folder, "an encoder")
    missing = sorted(key for key in loaded["missing_keys"] if not any(fnmatch(key, pattern) for pattern in NOT_STATES))
    if missing:
        raise RecipeError(f"{folder}: model.safetensors lacks weights of the backbone; the first is {missing[0]}")
    network.requires_grad_(False)
    return network.eval(), open_tokenizer(folder)
