"""Vectors of two languages in the directions in which those of aligned words correlate (Faruqui & Dyer 2014, "Improving
Vector Space Word Representations Using Multilingual Correlation", §2; Guo, Che, Yarowsky, Wang & Liu 2015, §3.2).

Shapes: V words of both languages, D pairs of words, W elements of the vectors of one language, K of the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from pipelines.errors import DataError
from pipelines.parts.estimates import TokenFile, Workspace
from pipelines.parts.estimates.paired_vectors import PairedVectors, as_weights
from pipelines.parts.estimates.sides_of_pairs import SOURCE, TARGET

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from transformers import PretrainedConfig

NEGLIGIBLE = 1e-10
"""Share of the largest singular value below which a direction has no variance."""


class CorrelatedVectors(PairedVectors, name="correlated_vectors"):
    """Vectors of both languages, learnt of each by itself, along their canonical variables: pairs of directions, one in
    each space, along which the vectors of aligned words correlate most.

    A word of the translations makes a pair with the word that it is most often aligned with. Over these pairs each
    canonical variable has a mean of 0 and a variance of 1.
    """

    paper = "Faruqui & Dyer 2014; Guo, Che, Yarowsky, Wang & Liu 2015"

    share: float = Field(0.5, gt=0, le=1)
    """Width of the backbone as a share of the width of each language's vectors."""

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        counts, known = self.alignments(text, workspace)
        kept = int(config.hidden_size)
        width = max(kept, round(kept / self.share))
        target, source = aligned_pairs(counts, known)
        vectors, others = (self.of_side(side, text, config, workspace, width) for side in (SOURCE, TARGET))
        first, second = canonical_variables(vectors[source], others[target], kept, str(text.path))
        foreign = ~known & others.any(axis=1)
        result = np.zeros((len(vectors), kept))
        result[known] = (vectors[known] - vectors[source].mean(axis=0)) @ first
        result[foreign] = (others[foreign] - others[target].mean(axis=0)) @ second
        return as_weights(result)


def aligned_pairs(counts: csr_array, known: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """int64 [D] each: the words that are aligned with one of `known` [V], none of which they are, and the word that
    each is most often aligned with, the lowest number of several.

    Args:
        counts: sparse [V, V], times that a word (row) is aligned with one of the other language (column).
    """
    cells = counts.tocoo()
    rows, columns = (np.asarray(one, dtype=np.int64) for one in cells.coords)
    chosen = ~known[rows] & known[columns]
    rows, columns, times = rows[chosen], columns[chosen], cells.data[chosen]
    order = np.lexsort((columns, -times, rows))
    target, first = np.unique(rows[order], return_index=True)
    return target, columns[order][first]


def canonical_variables(
    first: NDArray[np.float64], second: NDArray[np.float64], kept: int, where: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[W, K] each: maps of centred vectors of each side to the K = `kept` canonical variables of the pairs `first`
    [D, W] and `second` [D, W], the most correlated first.

    By the singular values of the product of both orthonormal bases (Björck & Golub 1973). Raises DataError, which
    names `where`, for fewer directions than K.
    """
    bases, maps = zip(*(_whitened(one) for one in (first, second)), strict=True)
    if (directions := min(base.shape[1] for base in bases)) < kept:
        raise DataError(
            f"{where}: {len(first)} pairs of aligned words span {directions} directions, and vectors of {kept} "
            "elements need as many; give the stage more pairs of texts, or lower backbone.hidden_size"
        )
    left, _, right = np.linalg.svd(bases[0].T @ bases[1])
    scale = np.sqrt(len(first))
    return maps[0] @ left[:, :kept] * scale, maps[1] @ right.T[:, :kept] * scale


def _whitened(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """[D, R] an orthonormal basis of the columns of centred `vectors` [D, W], and [W, R] the map to it."""
    basis, values, directions = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    rank = int((values > NEGLIGIBLE * values.max(initial=0.0)).sum())
    return basis[:, :rank], directions[:rank].T / values[:rank]
