"""Transformer-XL, a decoder with memory (Dai et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class TransformerXl(UnboundedBackbone, name="transformer_xl"):
    """Attention over a row and the states of the rows before, with relative positions; layout `contiguous` gives rows
    that continue one another."""

    paper = "arXiv:1901.02860"

    hidden_size: int = Field(128, gt=1)
    """Width of the embeddings and of every layer, in elements."""
    num_hidden_layers: int = Field(2, gt=0)
    """Number of layers."""
    num_attention_heads: int = Field(2, gt=0)
    """Heads of attention; the width is a multiple of them."""
    intermediate_size: int = Field(512, gt=0)
    """Inner width of the feed-forward networks."""
    memory_length: int = Field(64, ge=0)
    """Most tokens before the row whose states are kept; 0 is a Transformer that reads each row alone."""
    hidden_dropout: float = Field(0.1, ge=0, lt=1)
    """Share of elements dropped of what sub-layers add."""

    @model_validator(mode="after")
    def _has_whole_heads(self) -> Self:
        if self.hidden_size % (2 * self.num_attention_heads):
            raise ValueError(
                f"hidden_size {self.hidden_size} is not a multiple of {2 * self.num_attention_heads}: a sine and a "
                f"cosine for each of {self.num_attention_heads} heads"
            )
        return self

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.CAUSAL, Ability.MEMORY, Ability.ONE_STACK})

    @property
    def memory_tokens(self) -> int:
        return self.memory_length

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.transformer_xl import TransformerXlConfig, register_auto_classes

        register_auto_classes()
        return TransformerXlConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))

    def tiny(self) -> Self:
        small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        return self.model_copy(update=small)
