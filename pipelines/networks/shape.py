"""The shape of a network, as far as a recipe or a configuration states it. Imports no torch: planning reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from transformers import PretrainedConfig


class NetworkShape(NamedTuple):
    """Layers, width and attention heads of a single stack; None for what is not known."""

    layers: int | None = None
    width: int | None = None
    """Elements of a hidden state."""
    heads: int | None = None
    """Attention heads of a layer."""

    @classmethod
    def of(cls, config: PretrainedConfig) -> NetworkShape:
        """The shape that a Hugging Face configuration states."""
        keys = ("num_hidden_layers", "hidden_size", "num_attention_heads")
        values = (getattr(config, key, None) for key in keys)
        return cls(*(value if isinstance(value, int) else None for value in values))
