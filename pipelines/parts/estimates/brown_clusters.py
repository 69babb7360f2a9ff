"""Words by their Brown clusters: merged so that the class of a word says most about that of the next (Brown et al.
1992)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.estimates.class_merging import MergedClasses
from pipelines.parts.estimates.weighted_neighbours import require_words
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from transformers import PretrainedConfig

CHUNK = 2**20
"""Tokens that are counted at once."""


class BrownClusters(Estimation, name="brown_clusters"):
    """A word's vector is its path from the root of the tree in which classes of words were merged.

    One element for each inner node, the root first: −1 for the words on its left, 1 for those on its right, 0 for words
    that are not below it. All prefixes of a word's bits (Turian, Ratinov & Bengio 2010, §3.1) are linear functions of
    that vector. Words of one class have one vector; there is one class more than the vector has elements.

    The most frequent words begin as classes of their own; each next word becomes one more, and the two classes merge
    whose merger loses least of the mutual information of adjacent classes (§3). Special tokens are no words and divide
    the text: their vectors are 0, and so are those of words that the text does not contain.
    """

    paper = "Brown, Della Pietra, deSouza, Lai & Mercer 1992"
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.STATIC})

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        require_words(text, self.name)
        classes = int(config.hidden_size) + 1
        counts = np.asarray(text.counts, dtype=np.int64)
        counts[list(text.special)] = 0
        # ids break ties, so that the order is that of the text alone
        words = np.lexsort((np.arange(len(counts)), -counts))[: int((counts > 0).sum())]
        if classes > len(words):
            raise DataError(
                f"{text.path}: {len(words)} words are no {classes} classes, which vectors of {classes - 1} elements "
                "need; lower backbone.hidden_size, or give the stage more text"
            )
        pairs = adjacent_words(text)
        if not pairs.nnz:
            raise DataError(
                f"{text.path}: no two words of the vocabulary are next to each other, so that classes have nothing to "
                "predict; give the stage longer texts, or lower tokenizer.min_count"
            )
        class_of, tree = MergedClasses(pairs[words][:, words], classes).merge()
        vectors = np.zeros((text.vocabulary_size, classes - 1), dtype=np.float32)
        vectors[words] = tree[class_of]
        return {"embeddings.weight": vectors}


def adjacent_words(text: TokenFile) -> csr_array:
    """Sparse float64 [V, V]: how often the second word comes right after the first in a document."""
    from scipy.sparse import csr_array

    tokens, size = text.tokens, text.vocabulary_size
    total = csr_array((size, size), dtype=np.float64)
    for begin in range(0, len(tokens), CHUNK):
        # a pair belongs to the chunk in which its first token is
        ids = np.asarray(tokens[begin : begin + CHUNK + 1]).astype(np.int64)
        words = ~np.isin(ids, text.special)  # the end of a document is special
        pair = words[:-1] & words[1:]
        cells, counts = np.unique(ids[:-1][pair] * size + ids[1:][pair], return_counts=True)
        total = total + csr_array((counts.astype(np.float64), np.divmod(cells, size)), shape=(size, size))
    return total
