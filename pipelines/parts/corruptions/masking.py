"""Base class of masking corruptions: which tokens can be selected, and how the selected ones are replaced (Devlin et
al. 2018, §3.1)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from typing import Self


class Masking(Corruption):
    """Select tokens to be predicted; most become the mask token, some a random one."""

    provides = frozenset({Field.MASKED_POSITIONS, Field.MASKED_LABELS})
    needs_tokens = frozenset({"mask"})

    rate: float = Option(0.15, gt=0, lt=1)
    """Share of a row's ordinary tokens to be predicted."""
    mask: float = Option(0.8, ge=0, le=1)
    """Share of those that become the mask token."""
    random: float = Option(0.1, ge=0, le=1)
    """Share of those that become a random ordinary token; the rest are unchanged."""

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.mask + self.random > 1:
            raise ValueError("mask and random are shares of the selected tokens: their sum must be at most 1")
        return self

    def budget(self, ordinary: NDArray[np.bool_]) -> NDArray[np.int64]:
        """int64 [B]: number of tokens to predict in each row of `ordinary` [B, L]: round(rate · ordinary tokens), at
        least 1."""
        counts: NDArray[np.int64] = np.maximum(np.rint(self.rate * ordinary.sum(1)).astype(np.int64), 1)
        return counts

    def mask_positions(
        self,
        batch: Arrays,
        positions: NDArray[np.int64],
        tokens: TokenIds,
        random: np.random.Generator,
        together: NDArray[np.int64] | None = None,
    ) -> Arrays:
        """`batch` with the tokens at the flattened, ascending `positions` [M] replaced, and MASKED_POSITIONS and
        MASKED_LABELS.

        Whether a token is masked, randomised or kept is drawn for each position, or once for all positions with the
        same group id in `together` [M], from 0.
        """
        clean = batch[Field.INPUT_IDS]
        corrupted = clean.ravel().copy()
        groups = len(positions) if together is None else int(together.max(initial=-1)) + 1
        draw = random.random(groups)[... if together is None else together]
        corrupted[positions[draw < self.mask]] = tokens.mask
        replaced = positions[(draw >= self.mask) & (draw < self.mask + self.random)]
        ordinary = _ordinary_ids(tokens.size, tokens.special)
        corrupted[replaced] = ordinary[random.integers(len(ordinary), size=len(replaced))]
        return {
            **batch,
            Field.INPUT_IDS: corrupted.reshape(clean.shape),
            Field.MASKED_POSITIONS: positions,
            Field.MASKED_LABELS: clean.ravel()[positions],
        }


def is_ordinary(ids: NDArray[Any], tokens: TokenIds) -> NDArray[np.bool_]:
    """Bool, of the shape of `ids`: True for tokens that may be corrupted."""
    result: NDArray[np.bool_] = _table(tokens.size, tokens.special)[ids]
    return result


def word_beginnings(batch: Arrays, ordinary: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Bool [B, L]: the ordinary tokens that begin a word. The rest of a word that is cut by the row's start is a word
    too."""
    after_other = np.ones_like(ordinary)
    np.logical_not(ordinary[:, :-1], out=after_other[:, 1:])
    result: NDArray[np.bool_] = ordinary & (after_other | (batch[Field.WORD_STARTS] == 1))
    return result


@lru_cache(maxsize=8)
def _table(size: int, special: tuple[int, ...]) -> NDArray[np.bool_]:
    ordinary = np.ones(size, dtype=np.bool_)
    ordinary[[token for token in special if 0 <= token < size]] = False
    return ordinary


@lru_cache(maxsize=8)
def _ordinary_ids(size: int, special: tuple[int, ...]) -> NDArray[np.int64]:
    return np.flatnonzero(_table(size, special))
