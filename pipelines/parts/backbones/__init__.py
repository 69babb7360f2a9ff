"""Backbones: the networks below the heads, from token ids to hidden states; in transformers the base models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import model_validator

from pipelines.components import Component
from pipelines.networks.shape import NetworkShape
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

    from pipelines.parts.embeddings import Embedding


MOST_WIDE = 2**20
"""Largest number of layers, heads or elements of a width: twenty times the largest in use."""


class Backbone(Component):
    """An architecture with its dimensions."""

    needs_tokens: ClassVar[frozenset[str]] = frozenset()
    """What a tokenizer must offer."""

    @model_validator(mode="after")
    def _fits_a_machine(self) -> Self:
        for name, value in self:
            if isinstance(value, int) and value > MOST_WIDE:
                raise ValueError(f"{name}: {value:,} is more than any machine holds; the most is {MOST_WIDE:,}")
        return self

    @property
    @abstractmethod
    def offers(self) -> frozenset[Ability]:
        """The abilities of this backbone."""

    @property
    @abstractmethod
    def max_length(self) -> int | None:
        """Maximum sequence length in tokens; None if there is no limit."""

    @property
    def memory_tokens(self) -> int:
        """Most tokens before a row whose states it keeps; 0 where it keeps none, or a state of fixed size."""
        return 0

    @property
    def added_embeddings(self) -> tuple[Embedding, ...]:
        """Embeddings that read channels and are added to the input of this backbone."""
        return ()

    @property
    def token_types(self) -> int:
        """Number of token types; 0 for a backbone that reads none."""
        return 0

    @property
    def shape(self) -> NetworkShape:
        """Layers, width and heads, as far as they are stated."""
        return NetworkShape()

    @property
    def label(self) -> str:
        """The architecture as named in a recipe, without dimensions."""
        return self.name

    @classmethod
    def names_offering(cls, abilities: frozenset[Ability]) -> list[str]:
        """All backbones of the family that offer `abilities`, as named in a recipe."""
        members = [member for _, member in sorted(Backbone.members.items()) if issubclass(member, Backbone)]
        return [one.label for member in members for one in member.variants() if abilities <= one.offers]

    @classmethod
    def variants(cls) -> list[Self]:
        """One backbone for each architecture of this member."""
        return [cls()]

    @classmethod
    def recognise(cls, config: Mapping[str, Any]) -> Self | None:
        """The backbone that a Hugging Face configuration describes, or None if it is not of this member."""
        return None

    @abstractmethod
    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        """The Hugging Face configuration of a new backbone for `tokenizer` and sequences of up to `length` tokens.

        Raises RecipeError for unknown or invalid dimensions.
        """

    def tiny(self) -> Self:
        """The same architecture at the smallest size that still has all its parts, for smoke runs."""
        return self
