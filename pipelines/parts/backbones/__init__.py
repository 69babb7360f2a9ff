"""Backbones: the body that turns token ids into hidden states, before any head."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from pipelines.components import Component
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Backbone(Component):
    """An architecture and its dimensions."""

    @property
    @abstractmethod
    def offers(self) -> frozenset[Ability]:
        """What this body can do."""

    @property
    @abstractmethod
    def longest(self) -> int | None:
        """Tokens of the longest sequence it can read; None where there is no such limit."""

    @property
    def described(self) -> str:
        """This kind of body as a recipe spells it, dimensions left out."""
        return self.name

    @classmethod
    def fitting(cls, abilities: frozenset[Ability]) -> list[str]:
        """The bodies of the whole family that offer `abilities`, as a recipe would spell them."""
        members = [member for _, member in sorted(Backbone.members.items()) if issubclass(member, Backbone)]
        return [one.described for member in members for one in member.kinds() if abilities <= one.offers]

    @classmethod
    def kinds(cls) -> list[Self]:
        """One body of each kind that differs in what it offers."""
        return [cls()]

    @classmethod
    def recognise(cls, config: Mapping[str, Any]) -> Self | None:
        """The body that a Hugging Face configuration describes, or None when it is not of this member."""
        return None

    @abstractmethod
    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        """The Hugging Face configuration of a new body for `tokenizer` and sequences of up to `length` tokens.

        Raises RecipeError when the architecture is unknown or refuses a dimension.
        """

    def tiny(self) -> Self:
        """The same kind of body at the smallest size that still has all its parts, for smoke runs."""
        return self
