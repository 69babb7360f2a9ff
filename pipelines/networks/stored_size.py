"""The size of a saved network by what its bytes are: estimated before anything computes. Imports no torch."""

from __future__ import annotations

from typing import NamedTuple


class StoredSize(NamedTuple):
    """Bytes of the weights in a file."""

    embeddings: float = 0.0
    attention: float = 0.0
    """Weights of the layers outside their feed-forward sub-layers."""
    feed_forward: float = 0.0
    rest: float = 0.0
    """Head and pooler."""

    @property
    def total(self) -> float:
        return sum(self)

    def times(self, factor: float) -> StoredSize:
        return StoredSize(*(part * factor for part in self))

    def layers_times(self, factor: float) -> StoredSize:
        """The size with layers of `factor` times the bytes."""
        return self._replace(attention=self.attention * factor, feed_forward=self.feed_forward * factor)
