"""Encoder of contexts: what is on both sides of a word, without the word (Melamud, Goldberger & Dagan 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Context2vec(UnboundedBackbone, name="context2vec"):
    """An LSTM from each side up to the word, and a perceptron over both."""

    paper = "doi:10.18653/v1/K16-1006"

    embedding_size: int = Field(300, gt=0)
    """Width of a context word's vector, in elements."""
    lstm_size: int = Field(600, gt=0)
    """Width of each direction, in elements."""
    inner_size: int = Field(1200, gt=0)
    """Width of the perceptron's hidden layer, in elements."""
    hidden_size: int = Field(600, gt=0)
    """Width of a context's vector, in elements."""

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.CONTEXT_VECTORS, Ability.ONE_STACK})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.context2vec import Context2vecConfig, register_auto_classes

        register_auto_classes()
        return Context2vecConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))

    def tiny(self) -> Self:
        return self.model_copy(update={"embedding_size": 16, "lstm_size": 16, "inner_size": 32, "hidden_size": 16})
