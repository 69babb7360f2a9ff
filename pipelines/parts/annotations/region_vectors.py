"""Vectors of the regions of an image, beside a text about it (Su et al. 2020, VL-BERT §3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.annotations.vector_column import VectorColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText


class RegionVectors(VectorColumn, name="region_vectors"):
    """The vector of each region; a token of a text about the image has that of the whole image, the mean of its
    regions.

    In the paper the vector of the whole image is read from it as those of its regions are. Vectors of regions are read
    and checked as the annotation `vector_column` does.
    """

    paper = "arXiv:1908.08530"

    words: str = "regions"
    """Column with the words of the regions."""
    column: str = "vectors"
    """Column with a vector for each region."""

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        if text.column == self.words:
            return super().annotate(text)
        given = [vector for vector in text.value(self.column) if len(vector) == self.width]
        whole = np.mean(given, axis=0, dtype=np.float64) if given else np.zeros(self.width)
        return {self.channel: np.tile(whole.astype(np.float32), (len(text), 1))}
