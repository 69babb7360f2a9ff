"""Our own networks, each a Hugging Face `PreTrainedModel`. Modules here import torch; nothing that plans imports them."""

from __future__ import annotations


def register() -> None:
    """Let the Auto classes of transformers open the folders of our own bodies. May be called again."""
    from pipelines.networks import awd_lstm, word_vectors

    awd_lstm.register()
    word_vectors.register()
