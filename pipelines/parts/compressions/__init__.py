"""Compressions: how a network becomes smaller, before or after training it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.components import Component

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Compression(Component):
    """A step from a larger network to a smaller one. A member overrides one of the two methods."""

    replaces_weights: ClassVar[bool] = False
    """True when the member overrides `convert`, whose form is served instead of `model.safetensors`."""

    def shrink(self, network: PreTrainedModel) -> PreTrainedModel:
        """The smaller network whose weights the following training starts from."""
        return network

    def convert(self, source: Path, network: PreTrainedModel, out: Path) -> None:
        """Write into `out` the compressed serving form of the Hugging Face folder `source`.

        `network` is the classifier saved there, float32, in evaluation mode.
        """
