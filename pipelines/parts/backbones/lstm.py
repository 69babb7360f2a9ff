"""Stacked LSTMs, a recurrent backbone (Hochreiter & Schmidhuber 1997), as a language model (Sundermeyer et al.
2012)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.backbones.recurrent import RecurrentBackbone

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Lstm(RecurrentBackbone, name="lstm"):
    """A cell behind input, forget and output gates; nothing is dropped, unlike in `awd_lstm`."""

    paper = "Sundermeyer et al. 2012"

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.lstm import LstmConfig, register_auto_classes

        register_auto_classes()
        return LstmConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))
