"""Attention to earlier tokens (Dong et al. 2019, UniLM §2.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.attention import AttentionPattern
from pipelines.task_families.encoding import FieldArrays
from pipelines.vocabulary import Field


class LeftToRight(AttentionPattern, name="left_to_right"):
    """A token attends to itself and to earlier ones; with `reversed`, to itself and to later ones."""

    paper = "arXiv:1905.03197"

    reversed: bool = False
    """Whether the row is read from right to left."""

    def visible(self, batch: FieldArrays) -> NDArray[np.bool_]:
        length = batch[Field.INPUT_IDS].shape[1]
        earlier = np.tri(length, dtype=np.bool_)
        return earlier.T if self.reversed else earlier
