"""Word vectors by latent semantic analysis: a weighted matrix of counts, reduced to its largest singular values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import DataError
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from transformers import PretrainedConfig

CHUNK = 2**20
"""Tokens that are counted at once."""


class Lsa(Estimation, name="lsa"):
    """Words by the documents, or by the neighbours, that they occur with; vectors are left singular vectors, weighted.

    Counts in documents are weighted by logarithm and entropy (Deerwester et al. 1990; Dumais 1991), counts of
    neighbours by positive pointwise mutual information (Levy, Goldberg & Dagan 2015, §2.1, §3). Special tokens are no
    words: their vectors are 0, and so are those of words that the text does not contain.
    """

    paper = "Deerwester et al. 1990"
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.STATIC})

    contexts: Literal["documents", "neighbours"] = "documents"
    """Columns of the matrix: documents, or words within a window."""
    window: PositiveInt = 5
    """Tokens on each side that are neighbours."""
    smoothing: float = Field(0.75, gt=0, le=1)
    """Exponent of the neighbours' frequencies, which makes rare ones less informative."""
    power: float = Field(1.0, ge=0)
    """Exponent of the singular values in the vectors; 0.5 or 0 suit neighbours (Levy et al. 2015, §3.3)."""

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        width = int(config.hidden_size)
        if self.contexts == "documents":
            matrix = log_entropy(document_counts(text))
        else:
            matrix = positive_information(neighbour_counts(text, self.window), self.smoothing)
        if width >= min(matrix.shape) or not matrix.nnz:
            raise DataError(
                f"{text.path}: a matrix of {matrix.shape[0]} words and {matrix.shape[1]} {self.contexts} has no "
                f"{width} singular values; lower backbone.hidden_size, or give the stage more text"
            )
        vectors = left_singular_vectors(matrix, width, self.power)
        vectors[np.diff(matrix.indptr) == 0] = 0.0  # up to rounding they are
        return {"embeddings.weight": vectors.astype(np.float32)}


def document_counts(text: TokenFile) -> csr_array:
    """Sparse [V, D]: occurrences of each word in each document."""
    from scipy.sparse import csr_array

    tokens, size = text.tokens, text.vocabulary_size
    documents = max(1, text.counts[text.end])
    total = csr_array((size, documents), dtype=np.float64)
    before = 0
    for begin in range(0, len(tokens), CHUNK):
        ids = np.asarray(tokens[begin : begin + CHUNK])
        ends = ids == text.end
        document = before + np.cumsum(ends) - ends
        before += int(ends.sum())
        words = ~np.isin(ids, text.special)
        total = total + csr_array(
            (np.ones(int(words.sum())), (ids[words].astype(np.int64), document[words])), shape=(size, documents)
        )
    return total


def neighbour_counts(text: TokenFile, window: int) -> csr_array:
    """Sparse [V, V]: how often two words are at most `window` tokens apart in a document; symmetric."""
    from scipy.sparse import csr_array

    tokens, size = text.tokens, text.vocabulary_size
    total = csr_array((size, size), dtype=np.float64)
    for begin in range(0, len(tokens), CHUNK):
        ids = np.asarray(tokens[begin : begin + CHUNK + window]).astype(np.int64)
        document = np.cumsum(ids == text.end)
        words = ~np.isin(ids, text.special)
        pairs = []
        for distance in range(1, window + 1):
            # a pair belongs to the chunk in which its first token is
            first = np.arange(max(0, min(CHUNK, len(ids) - distance)))
            second = first + distance
            pair = words[first] & words[second] & (document[first] == document[second])
            pairs.append(ids[first[pair]] * size + ids[second[pair]])
        # sorting numbers once is several times as fast as adding a sparse matrix for each distance
        cells, counts = np.unique(np.concatenate(pairs), return_counts=True)
        total = total + csr_array((counts.astype(np.float64), np.divmod(cells, size)), shape=(size, size))
    return csr_array(total + total.T)


def log_entropy(counts: csr_array) -> csr_array:
    """log(1 + count) · (1 + Σ p log p / log D) of each word, where p is the share of its occurrences in a document
    (Dumais 1991)."""
    from scipy.sparse import csr_array, diags_array

    documents = max(2, counts.shape[1])
    sums = np.asarray(counts.sum(axis=1)).ravel()
    shares = diags_array(np.divide(1.0, sums, out=np.zeros_like(sums), where=sums > 0)) @ counts
    entropy = shares.copy()
    entropy.data = shares.data * np.log(shares.data)
    weights = 1 + np.asarray(entropy.sum(axis=1)).ravel() / np.log(documents)
    logs = counts.copy()
    logs.data = np.log1p(counts.data)
    return csr_array(diags_array(weights) @ logs)


def positive_information(counts: csr_array, smoothing: float) -> csr_array:
    """max(0, log(p(w, c) / (p(w) p(c)))), with p(c) proportional to the count of c to the power `smoothing` (Levy et
    al. 2015, eq. 3)."""
    pairs = counts.tocoo()
    words = np.asarray(counts.sum(axis=1)).ravel()
    neighbours = np.asarray(counts.sum(axis=0)).ravel() ** smoothing
    rows, columns = pairs.coords
    information = np.log(pairs.data * neighbours.sum() / (words[rows] * neighbours[columns]))
    pairs.data = np.maximum(information, 0.0)
    result = pairs.tocsr()
    result.eliminate_zeros()
    return result


def left_singular_vectors(matrix: csr_array, width: int, power: float) -> NDArray[np.float64]:
    """[V, width]: left singular vectors of the largest singular values, times these to `power`, largest first.

    Their sign is arbitrary: the largest element of each is positive.
    """
    from scipy.sparse.linalg import svds

    start = np.ones(min(matrix.shape))  # ARPACK's own start is random
    left, values, _ = svds(matrix, k=width, v0=start, solver="arpack")
    order = np.argsort(-values)
    left, values = left[:, order], np.maximum(values[order], 0.0)
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(width)])
    result: NDArray[np.float64] = left * signs * values**power
    return result
