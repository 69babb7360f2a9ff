"""Corruptions: transformations of clean token rows before the network reads them. In NumPy, vectorised over the
batch."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipelines.components import Component
from pipelines.components.declared import DeclaredBatch, wrap_own
from pipelines.vocabulary import Field

Arrays: TypeAlias = dict[Field, NDArray[Any]]
"""A batch: from field to array."""


@dataclass(frozen=True)
class TokenIds:
    """The vocabulary of a tokenizer, as far as corruptions need it."""

    size: int
    """Number of tokens; ids are 0 … size − 1."""
    mask: int
    """Id of the mask token; −1 if there is none."""
    special: tuple[int, ...]
    """Ids that are never corrupted and never drawn as replacements."""
    pad: int = 0
    """Id of the padding token."""
    end: int = 0
    """Id of the token that ends a document or a target sequence."""
    sentinels: tuple[int, ...] = ()
    """Ids of the tokens that replace removed spans, in the order of use (Raffel et al. 2019, §3.1.4)."""
    counts: NDArray[np.int64] | None = None
    """int64 [size]: frequency of each token in the stage's text; None if not counted."""
    texts: tuple[str, ...] = ()
    """The string of each token by its id, as the tokenizer writes it: with its marks of spaces and continued words."""
    student_tokens: int = 0
    """Number of tokens, the first ones, that are the vocabulary of a student within it; 0 if there is none."""


class Corruption(Component):
    """A transformation of a batch. The corruptions of a stage run in the order of the recipe."""

    needs: ClassVar[frozenset[Field]] = frozenset({Field.INPUT_IDS})
    """Fields that `apply` reads."""
    may_read: ClassVar[frozenset[Field]] = frozenset()
    """Fields that `apply` reads where a batch has them, such as positions of the layout that it changes. Any other is
    refused."""
    provides: ClassVar[frozenset[Field]]
    """Fields that `apply` adds."""
    needs_tokens: ClassVar[frozenset[str]] = frozenset()
    """Required features of the tokenizer (`Tokenizer.offers`): `mask`, `sentinels`, `roles`, `student_tokens`."""
    replaces: ClassVar[frozenset[Field]] = frozenset()
    """Fields that are invalid afterwards, because `apply` moves or removes tokens."""
    segments: ClassVar[int] = 1
    """Number s of adjacent parts of a passage that become rows of one batch: rows 0 … B/s − 1 are the first parts."""
    pairs_segments: ClassVar[bool] = False
    """Whether rows become pairs of segments, which may be those of other rows: their tokens then come with the values
    of all channels."""

    reorders: ClassVar[bool] = False
    """Whether tokens come in another order than that of the text."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        wrap_own(cls, "apply", _applied_to_declared)

    @property
    def token_types(self) -> int:
        """Number of token types that the backbone must have for what this corruption writes."""
        return 0

    def unfit_rows(self, length: int) -> str | None:
        """Why rows of `length` tokens, special tokens included, cannot be corrupted so; None if they can."""
        return None

    @abstractmethod
    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """`batch` with the fields of this corruption added or replaced; a pure function of the three arguments.

        A corruption that moves or removes tokens does the same to their values in every field that `is_channel`, unless
        it `replaces` it.
        """


def _applied_to_declared(apply: Callable[..., Arrays]) -> Callable[..., Arrays]:
    """`apply` with a batch that refuses fields which the corruption does not declare."""

    def applied(self: Corruption, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        view = DeclaredBatch(batch, self, self.needs | self.may_read, "`needs` or `may_read`")
        return apply(self, view, tokens, random)

    return applied
