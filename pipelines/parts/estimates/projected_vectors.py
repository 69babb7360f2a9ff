"""Vectors of another language's words as means of those that they are aligned with (Guo, Che, Yarowsky, Wang & Liu
2015, "Cross-lingual Dependency Parsing Based on Distributed Representations", §3.1, robust projection)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from pipelines.parts.estimates import TokenFile, Workspace
from pipelines.parts.estimates.one_edit import words_at_one_edit
from pipelines.parts.estimates.paired_vectors import PairedVectors, as_weights
from pipelines.parts.estimates.sides_of_pairs import SOURCE

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from transformers import PretrainedConfig


class ProjectedVectors(PairedVectors, name="projected_vectors"):
    """Vectors of the words of texts, and for each word of their translations the mean over its aligned words, weighted
    by how often it is aligned with each.

    A word of the translations that is aligned with none has the mean of the aligned ones that differ from it in one
    letter, or else a vector of 0.
    """

    paper = "Guo, Che, Yarowsky, Wang & Liu 2015"

    edits: int = Field(1, ge=0, le=1)
    """Edits between a word without alignment and the words whose mean it has; 0: its vector is 0."""

    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        counts, known = self.alignments(text, workspace)
        vectors = self.of_side(SOURCE, text, config, workspace, int(config.hidden_size))
        return as_weights(projected(vectors, known, counts, text.texts if self.edits else ()))


def projected(
    vectors: NDArray[np.float64], known: NDArray[np.bool_], counts: csr_array, spelt: tuple[str, ...]
) -> NDArray[np.float64]:
    """[V, W]: `vectors` [V, W] of the words that are `known` [V]; those of all others as the class says.

    Args:
        counts: sparse [V, V], times that a word (row) is aligned with a known one (column).
        spelt: the word of each number, by which those without alignment are compared; empty: they are not.
    """
    totals = np.asarray(counts.sum(axis=1)).ravel()
    means = (counts @ vectors) / np.maximum(totals, 1.0)[:, None]
    result: NDArray[np.float64] = np.where(known[:, None], vectors, means)
    if not spelt:
        return result
    aligned = {spelt[number]: number for number in np.flatnonzero(~known & (totals > 0)).tolist()}
    left = np.flatnonzero(~known & (totals == 0)).tolist()
    for number, others in zip(left, words_at_one_edit([spelt[at] for at in left], aligned), strict=True):
        if others:
            result[number] = result[others].mean(axis=0)
    return result
