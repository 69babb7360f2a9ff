"""Bidirectional LSTM over words, the network of a tagger (Lample et al. 2016)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field, field_validator

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Bilstm(UnboundedBackbone, name="bilstm"):
    """LSTMs in both directions over embeddings of its own, the features of the stage, or both side by side."""

    paper = "arXiv:1603.01360"

    hidden_size: int = Field(200, gt=1)
    """Width of a layer's output, in elements, half of them from each direction."""
    num_hidden_layers: int = Field(1, gt=0)
    """Number of layers, each in both directions."""
    embedding_size: int = Field(100, ge=0)
    """Width of the trained vector of each token, random at first; 0: none, where the stage has features."""
    input_dropout: float = Field(0.5, ge=0, lt=1)
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
        from pipelines.networks.bilstm import BilstmConfig, register_auto_classes

        register_auto_classes()
        return BilstmConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 32, "embedding_size": min(self.embedding_size, 16)})
