"""Token types that identify what a row is read as (Dong et al. 2019, UniLM §2.1, §2.3)."""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import Field


class TokenTypes(Corruption, name="token_types"):
    """Give the tokens of a row one type, or divide the row into a source and a target of different types.

    A row with two types is divided at an ordinary token drawn between `shortest` and 1 − `shortest` of them, which
    becomes the token that ends a document, the last one of the source.
    """

    paper = "arXiv:1905.03197"
    provides = frozenset({Field.TOKEN_TYPE_IDS})

    types: tuple[int, ...] = Option(min_length=1, max_length=2)
    """The type of a whole row, or those of source and target; smaller than the backbone's number of
    types, BERT's `type_vocab_size`."""
    shortest: float = Option(0.25, gt=0, le=0.5)
    """Share of a row's ordinary tokens in the shorter of source and target, at least."""

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if min(self.types) < 0 or list(self.types) != sorted(set(self.types)):
            raise ValueError("types are numbers from 0, that of the source before that of the target")
        return self

    @property
    def token_types(self) -> int:
        return max(self.types) + 1

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        ids = batch[Field.INPUT_IDS]
        types = np.full(ids.shape, self.types[0], dtype=np.int64)
        if len(self.types) == 1:
            return {**batch, Field.TOKEN_TYPE_IDS: types}
        ordinary = is_ordinary(ids, tokens)
        counts = ordinary.sum(1)
        first = np.rint(self.shortest * counts)
        nth = np.floor(first + random.random(len(ids)) * np.maximum(counts - 2 * first, 1)).astype(np.int64)
        ends = np.argmax(np.cumsum(ordinary, axis=1) > np.minimum(nth, counts - 1)[:, None], axis=1)
        divided = ids.copy()
        rows = np.flatnonzero(counts > 1)
        divided[rows, ends[rows]] = tokens.end
        types[np.arange(ids.shape[1]) > np.where(counts > 1, ends, ids.shape[1])[:, None]] = self.types[1]
        return {**batch, Field.INPUT_IDS: divided, Field.TOKEN_TYPE_IDS: types}
