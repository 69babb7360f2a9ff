"""Corruptions: what is done to clean token rows before the network sees them. Numpy, vectorised over the batch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipelines.components import Component
from pipelines.vocabulary import Field

Arrays: TypeAlias = dict[Field, NDArray[Any]]


@dataclass(frozen=True)
class TokenIds:
    """What a corruption must know of a tokenizer."""

    size: int
    """Number of tokens; ids are 0 … size − 1."""
    mask: int
    """−1 where the tokenizer has no mask token."""
    special: tuple[int, ...]
    """Ids that are never corrupted and never drawn as replacements."""
    pad: int = 0
    end: int = 0
    """Closes a document, and a target sequence."""
    sentinels: tuple[int, ...] = ()
    """Ids that stand for spans that were taken out, in the order of use (Raffel et al. 2019, §3.1.4)."""
    counts: NDArray[np.int64] | None = None
    """int64 [size]: how often each token stands in the stage's text."""


class Corruption(Component):
    """One transformation of a batch. Corruptions of a stage run in the order the recipe names them."""

    needs: ClassVar[frozenset[Field]] = frozenset({Field.INPUT_IDS})
    provides: ClassVar[frozenset[Field]]
    needs_tokens: ClassVar[frozenset[str]] = frozenset()
    """What it needs of the tokenizer: `mask`, `sentinels`."""
    replaces: ClassVar[frozenset[Field]] = frozenset()
    """Fields that mean nothing after it, because it moved or removed tokens."""
    segments: ClassVar[int] = 1
    """How many adjacent pieces of a passage become rows of one batch: rows 0 … B/s − 1 hold the first pieces."""

    @abstractmethod
    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """`batch` with this corruption's fields added or replaced; a pure function of its three arguments."""
