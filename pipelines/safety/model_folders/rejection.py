"""The reason why a model folder is rejected."""

from __future__ import annotations


class UnsafeFolderError(ValueError):
    """A model folder that must not be opened: one sentence with the file, the reason, and what to do."""
