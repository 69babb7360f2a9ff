"""Bidirectional LSTM over words, the network of a tagger (Lample et al. 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.backbones.bidirectional import BidirectionalBackbone

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Bilstm(BidirectionalBackbone, name="bilstm"):
    """LSTMs in both directions over embeddings of its own, the features of the stage, or both side by side."""

    paper = "arXiv:1603.01360"

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.bilstm import BilstmConfig, register_auto_classes

        register_auto_classes()
        return BilstmConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))
