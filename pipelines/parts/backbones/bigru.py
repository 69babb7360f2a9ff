"""Bidirectional GRU over words, the encoder of a sentence that several tasks share (Subramanian et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field, field_validator

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Bigru(UnboundedBackbone, name="bigru"):
    """GRUs in both directions, with three quarters of the weights of a `bilstm` of their width."""

    paper = "arXiv:1804.00079"

    hidden_size: int = Field(256, gt=1)
    """Width of a layer's output, in elements, half of them from each direction."""
    num_hidden_layers: int = Field(1, gt=0)
    """Number of layers, each in both directions."""
    embedding_size: int = Field(128, ge=0)
    """Width of the trained vector of each token, random at first; 0: none, where the stage has features."""
    input_dropout: float = Field(0.1, ge=0, lt=1)
    """Share of the elements dropped of what the first layer reads."""

    @field_validator("hidden_size")
    @classmethod
    def _has_halves(cls, value: int) -> int:
        if value % 2:
            raise ValueError("an even number: half of the elements come from each direction")
        return value

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.FEATURES, Ability.ONE_STACK})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.bigru import BigruConfig, register_auto_classes

        register_auto_classes()
        return BigruConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 32, "embedding_size": min(self.embedding_size, 16)})
