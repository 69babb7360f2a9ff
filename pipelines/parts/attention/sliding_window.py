"""Attention within a sliding window, and to the first tokens of a row (Beltagy et al. 2020, Longformer §3.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.attention import AttentionPattern
from pipelines.task_families.encoding import FieldArrays
from pipelines.vocabulary import Field


class SlidingWindow(AttentionPattern, name="sliding_window"):
    """A token attends to the tokens at most half a window away, and to the first ones of its row, which attend to all.

    What is computed is Longformer's attention with the projections of global attention shared with those of the others;
    the scores are those of a full matrix, so that rows are read no faster.
    """

    paper = "arXiv:2004.05150"

    window: int = Option(64, ge=2)
    """Number of tokens in a window: half of them before a token, half after it."""
    first: int = Option(1, ge=0)
    """Number of tokens at the beginning of a row with attention to and from all others: 1 for classification."""

    def visible(self, batch: FieldArrays) -> NDArray[np.bool_]:
        position = np.arange(batch[Field.INPUT_IDS].shape[1])
        near: NDArray[np.bool_] = np.abs(position[:, None] - position[None, :]) <= self.window // 2
        return near | (position[:, None] < self.first) | (position[None, :] < self.first)
