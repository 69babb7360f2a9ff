"""Vectors of words with several prototypes, of which a state in its context is made (Huang et al. 2012)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class PrototypeVectorsBackbone(UnboundedBackbone, name="prototype_vectors"):
    """A table of words and one of prototypes; the state of a word is the mean of its prototypes, weighted by how likely
    each is among the words around it.

    Prototypes are given by `estimate: word_prototypes`. A stage with labels may train them further; the centres of
    contexts stay as they are.
    """

    paper = "Huang, Socher, Manning & Ng 2012"

    hidden_size: int = Field(100, gt=0)
    """Width of a vector, in elements."""
    window: int = Field(5, ge=1)
    """Neighbours on each side that are a word's context."""

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.PROTOTYPES, Ability.ONE_STACK})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.prototype_vectors import PrototypeVectorsConfig, register_auto_classes

        register_auto_classes()
        return PrototypeVectorsConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 16})
