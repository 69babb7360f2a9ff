"""Optimizers of our own, and what the training loop needs to know of any."""

from __future__ import annotations


class ClipsGradients:
    """Marks an optimizer that clips the global gradient norm within its step, so that the loop does not clip before it."""
