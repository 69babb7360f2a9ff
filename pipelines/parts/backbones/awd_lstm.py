"""AWD-LSTM, a recurrent backbone (Merity, Keskar, Socher 2017), used by ULMFiT (Howard & Ruder 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class AwdLstm(UnboundedBackbone, name="awd_lstm"):
    """Stacked LSTMs with dropout of words, elements and recurrent weights."""

    paper = "arXiv:1708.02182"

    hidden_size: int = Field(400, gt=0)
    """Width of the embeddings and of the top layer, in elements."""
    inner_size: int = Field(1150, gt=0)
    """Width of the layers below the top, in elements."""
    num_hidden_layers: int = Field(3, gt=0)
    """Number of LSTM layers."""
    embedding_dropout: float = Field(0.1, ge=0, lt=1)
    """Share of the vocabulary's words that are dropped from a whole batch."""
    input_dropout: float = Field(0.4, ge=0, lt=1)
    """Share of the embeddings' elements dropped, with one mask for all tokens of a row."""
    inner_dropout: float = Field(0.3, ge=0, lt=1)
    """Share of the elements dropped between layers, with one mask for all tokens of a row."""
    output_dropout: float = Field(0.4, ge=0, lt=1)
    """Share of the top layer's elements dropped, with one mask for all tokens of a row."""
    weight_dropout: float = Field(0.5, ge=0, lt=1)
    """Share of the hidden-to-hidden weights dropped, with one mask for all tokens of a batch."""

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.CAUSAL, Ability.RECURRENT, Ability.MEMORY, Ability.ONE_STACK})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.awd_lstm import AwdLstmConfig, register_auto_classes

        register_auto_classes()
        return AwdLstmConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 32, "inner_size": 48, "num_hidden_layers": 2})
