"""Base class of corruptions that make a channel what is to be predicted of each token (Sun et al. 2019, ERNIE 2.0
§4.2.1)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field

IGNORED = -100
"""Label of a token that is not classified."""


class ChannelLabels(Corruption):
    """Label each token by its value in one channel, less one; a token with the value 0 is not classified."""

    channel: ClassVar[Field]
    """The channel; a member names it in `needs` too."""
    values: ClassVar[int]
    """Number of values of the channel that are classes: 1 … `values`."""
    provides = frozenset({Field.TAG_LABELS})

    @property
    def classes(self) -> int:
        return self.values

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        values = batch[self.channel].astype(np.int64)
        return {**batch, Field.TAG_LABELS: np.where(values > 0, values - 1, IGNORED)}
