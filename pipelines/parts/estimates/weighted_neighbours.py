"""Counts of neighbours weighted by their distance, as GloVe reads them (Pennington, Socher & Manning 2014, §4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipelines.errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from pipelines.parts.estimates import TokenFile

CHUNK = 2**20
"""Tokens that are counted at once."""


def require_words(text: TokenFile, reader: str) -> None:
    """Raise DataError, before anything is counted, for a text with fewer than two different words."""
    words = sum(1 for token, count in enumerate(text.counts) if count and token not in text.special)
    if words < 2:
        raise DataError(
            f"{text.path}: the text has {words} word{'' if words == 1 else 's'} of the vocabulary, and {reader} needs "
            "two that occur together; give the stage more text, or lower tokenizer.min_count"
        )


def weighted_neighbours(text: TokenFile, window: int) -> csr_array:
    """Sparse float64 [V, V]: Σ 1 / distance over all pairs of words at most `window` tokens apart in a document;
    symmetric.

    A special token is no word, and takes a place in the window.
    """
    from scipy.sparse import csr_array

    tokens, size = text.tokens, text.vocabulary_size
    total = csr_array((size, size), dtype=np.float64)
    for begin in range(0, len(tokens), CHUNK):
        ids = np.asarray(tokens[begin : begin + CHUNK + window]).astype(np.int64)
        document = np.cumsum(ids == text.end)
        words = ~np.isin(ids, text.special)
        cells, counts = [], []
        for distance in range(1, window + 1):
            # a pair belongs to the chunk in which its first token is
            first = np.arange(max(0, min(CHUNK, len(ids) - distance)))
            second = first + distance
            pair = words[first] & words[second] & (document[first] == document[second])
            cell, number = np.unique(ids[first[pair]] * size + ids[second[pair]], return_counts=True)
            cells.append(cell)
            counts.append(number / distance)
        rows, columns = np.divmod(np.concatenate(cells), size)
        # cells of several distances are summed
        total = total + csr_array((np.concatenate(counts), (rows, columns)), shape=(size, size))
    return csr_array(total + total.T)
