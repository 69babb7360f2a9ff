"""Compressions: make a network smaller, before or after further training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.components import Component

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Compression(Component):
    """A conversion of a network to a smaller one. A member overrides one of the two methods."""

    replaces_weights: ClassVar[bool] = False
    """True if the member overrides `convert`, whose output is served instead of `model.safetensors`."""

    def shrink(self, network: PreTrainedModel) -> PreTrainedModel:
        """The smaller network that the following training starts from."""
        return network

    def convert(self, source: Path, network: PreTrainedModel, out: Path) -> None:
        """Write the compressed form of the Hugging Face folder `source`, for serving, into `out`.

        `network` is the classifier saved in `source`, float32, in evaluation mode.
        """
