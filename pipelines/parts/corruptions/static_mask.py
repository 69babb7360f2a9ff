"""Static masks: those of a text are drawn once for each of ten copies of it (Devlin et al. 2018; Liu et al. 2019,
RoBERTa §4.1)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import Masking, is_ordinary
from pipelines.vocabulary import Field

CONTEXT = 8
"""Number of tokens that identify where in the text a token is: itself and those before it in the row."""
_INCREMENT, _FIRST, _SECOND = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
"""Constants of splitmix64 (Steele et al. 2014)."""


class StaticMask(Masking, name="static_mask"):
    """Select a share of each row's tokens, always the same ones of a text in one of `copies` copies.

    BERT's data is written out ten times with masks before training. Here nothing is written: what is drawn for a token
    is a hash of the copy, the token and the seven before it in its row, so that a text has the same masks whichever row
    it is read in. The copy of a row is drawn. All else is as in `token_mask`: round(rate · ordinary tokens) of a row
    are selected, those with the smallest draws.
    """

    paper = "arXiv:1907.11692"

    copies: int = Option(10, ge=1, le=1_000_000)
    """Number of different masks of each text."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(clean, tokens)
        hashes = text_hashes(clean, random.integers(self.copies, size=len(clean)))
        draws = np.where(ordinary, _uniform(hashes), 2.0)
        ranks = np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1, kind="stable")
        positions = np.flatnonzero(ordinary & (ranks < self.budget(ordinary)[:, None]))
        chosen = hashes.ravel()[positions]
        draw = _uniform(_mixed(chosen + _INCREMENT))
        corrupted = clean.ravel().copy()
        corrupted[positions[draw < self.mask]] = tokens.mask
        replaced = (draw >= self.mask) & (draw < self.mask + self.random)
        vocabulary = _ordinary_ids(tokens.size, tokens.special)
        drawn = _mixed(chosen[replaced] + _INCREMENT + _INCREMENT) % np.uint64(max(len(vocabulary), 1))
        corrupted[positions[replaced]] = vocabulary[drawn.astype(np.int64)]
        return {
            **batch,
            Field.INPUT_IDS: corrupted.reshape(clean.shape),
            Field.MASKED_POSITIONS: positions,
            Field.MASKED_LABELS: clean.ravel()[positions],
        }


def text_hashes(ids: NDArray[np.int64], copies: NDArray[np.int64]) -> NDArray[np.uint64]:
    """uint64 [B, L]: a hash of each token of `ids` [B, L], of up to seven tokens before it, and of its row's copy
    [B]."""
    result = np.broadcast_to(_mixed(copies.astype(np.uint64) + _INCREMENT)[:, None], ids.shape).copy()
    for distance in range(min(CONTEXT, ids.shape[1])):
        end = ids.shape[1] - distance
        earlier = ids[:, :end].astype(np.uint64) + np.uint64(1)
        result[:, distance:] = _mixed(result[:, distance:] ^ earlier)
    return result


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64, a bijection whose output bits depend on all input bits."""
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def _uniform(values: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Numbers in [0, 1) of the upper 53 bits of each value."""
    return (values >> np.uint64(11)).astype(np.float64) * 2.0**-53


@lru_cache(maxsize=8)
def _ordinary_ids(size: int, special: tuple[int, ...]) -> NDArray[np.int64]:
    return np.setdiff1d(np.arange(size), special)
