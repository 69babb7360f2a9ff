"""Optimizers that torch does not have, and markers that the training loop reads from any optimizer."""

from __future__ import annotations


class ClipsGradients:
    """Marker of an optimizer that clips the global gradient norm within its step: the training loop then does not
    clip."""
