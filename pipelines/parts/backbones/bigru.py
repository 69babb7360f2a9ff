"""Bidirectional GRU over words, the encoder of a sentence that several tasks share (Subramanian et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.parts.backbones.bidirectional import BidirectionalBackbone

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Bigru(BidirectionalBackbone, name="bigru"):
    """GRUs in both directions, with three quarters of the weights of a `bilstm` of their width."""

    paper = "arXiv:1804.00079"

    hidden_size: int = Field(256, gt=1)
    embedding_size: int = Field(128, ge=0)
    input_dropout: float = Field(0.1, ge=0, lt=1)

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.bigru import BigruConfig, register_auto_classes

        register_auto_classes()
        return BigruConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))
