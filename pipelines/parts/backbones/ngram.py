"""N-gram tables: the next token from the few before it (Shannon 1948; Jelinek 1980)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Ngram(UnboundedBackbone, name="ngram"):
    """Log-probabilities and back-off weights of the n-grams of a text, estimated by counting."""

    paper = "Jelinek & Mercer 1980"

    order: int = Field(3, ge=1, le=8)
    """Tokens of the longest n-gram: a token is predicted from one fewer."""

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.CAUSAL, Ability.COUNTED})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.ngram import NgramConfig, register_auto_classes

        register_auto_classes()
        return NgramConfig(vocab_size=len(tokenizer), order=self.order, pad_token_id=tokenizer.pad_token_id)
