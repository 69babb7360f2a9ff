"""Alignment of the words of texts and their translations by IBM's model 1 (Brown et al. 1993, "The Mathematics of
Statistical Machine Translation", §4.1; EM of §4.1, eq. 8 to 14).

Shapes: P pairs, S source words and T target words of all pairs together, V words, C pairs of words that are in one pair
of texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

NULL = 0
"""Number of the word to which target words without a source belong; source words are numbered from 1."""


@dataclass(frozen=True)
class PairedWords:
    """The words of pairs of texts, each text after the one before."""

    source: NDArray[np.int64]
    """[S]: words, from 0 to V − 1."""
    source_pair: NDArray[np.int64]
    """[S]: number of each word's pair, ascending."""
    target: NDArray[np.int64]
    """[T]."""
    target_pair: NDArray[np.int64]
    """[T]: ascending."""
    size: int
    """V."""


@dataclass(frozen=True)
class Links:
    """Every source word beside every target word of its pair, and the empty word beside each."""

    cell: NDArray[np.int64]
    """[L]: number of the two words among those that occur together."""
    target: NDArray[np.int64]
    """[L]: position of the target word among all."""
    source: NDArray[np.int64]
    """[L]: position of the source word among all, −1 for the empty word."""
    owner: NDArray[np.int64]
    """[C]: source word of each cell, 0 for the empty one, others from 1."""

    @classmethod
    def of(cls, words: PairedWords) -> Links:
        pairs = int(max(words.source_pair.max(initial=-1), words.target_pair.max(initial=-1))) + 1
        sources = np.bincount(words.source_pair, minlength=pairs)
        # target after target, each beside all sources of its pair
        each = sources[words.target_pair]
        target = np.repeat(np.arange(len(words.target)), each)
        begins = np.cumsum(sources) - sources
        within = np.arange(len(target)) - np.repeat(np.cumsum(each) - each, each)
        source = np.repeat(begins[words.target_pair], each) + within
        source = np.concatenate([source, np.full(len(words.target), -1)])
        target = np.concatenate([target, np.arange(len(words.target))])
        first = np.where(source >= 0, words.source[np.maximum(source, 0)] + 1, NULL)
        keys, cell = np.unique(first * words.size + words.target[target], return_inverse=True)
        return cls(cell, target, source, keys // words.size)


def translation_probabilities(words: PairedWords, links: Links, rounds: int) -> NDArray[np.float64]:
    """float64 [C]: t(f | e) of each cell after `rounds` of EM from equal ones."""
    cells = len(links.owner)
    t = np.ones(cells)
    for _ in range(rounds):
        shares = t[links.cell]
        totals = np.bincount(links.target, shares, minlength=len(words.target))
        counts = np.bincount(links.cell, shares / totals[links.target], minlength=cells)
        t = counts / np.bincount(links.owner, counts)[links.owner]
    return t


def aligned(words: PairedWords, rounds: int) -> NDArray[np.int64]:
    """int64 [S]: for each source word the position of the target word that it most probably became, −1 for none.

    A target word belongs to the source word of the largest t(f | e); of several that belong to one, the most probable.
    """
    result = np.full(len(words.source), -1, dtype=np.int64)
    if not len(words.target) or not len(words.source):
        return result
    links = Links.of(words)
    probability = translation_probabilities(words, links, rounds)[links.cell]
    # the best link of each target word: the last of its links by probability; ties go to the first source, not to none
    rank = np.where(links.source < 0, -len(words.source), -links.source)
    order = np.lexsort((rank, probability, links.target))
    last = np.flatnonzero(np.diff(links.target[order], append=-1) != 0)
    best = order[last]
    best = best[links.source[best] >= 0]
    best = best[np.argsort(probability[best], kind="stable")]
    result[links.source[best]] = links.target[best]  # the most probable is written last
    return result
