"""Gated convolutions over tokens, a convolutional backbone (Dauphin et al. 2017; Gehring et al. 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field, field_validator

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Convolutional(UnboundedBackbone, name="convolutional"):
    """Each layer reads a window around every token, so that the top one reads layers · (window − 1) + 1 tokens."""

    paper = "arXiv:1612.08083"

    hidden_size: int = Field(128, gt=0)
    """Width of the embeddings and of every layer, in elements."""
    num_hidden_layers: int = Field(4, gt=0)
    """Number of layers."""
    window: int = Field(5, ge=1, le=1001)
    """Tokens that a layer reads around each, itself included."""
    hidden_dropout: float = Field(0.1, ge=0, lt=1)
    """Share of the elements dropped of the embeddings and of what each layer adds."""

    @field_validator("window")
    @classmethod
    def _has_a_centre(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("an odd number: a token, and as many before it as after it")
        return value

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.ONE_STACK})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.convolutional import ConvolutionalConfig, register_auto_classes

        register_auto_classes()
        return ConvolutionalConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 32, "num_hidden_layers": 2})
