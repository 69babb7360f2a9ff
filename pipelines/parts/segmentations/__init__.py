"""Segmentations: where words begin, stored alongside the tokens so that corruptions can treat words as units."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pipelines.components import Component
from pipelines.vocabulary import Field


class Segmentation(Component):
    """A method of finding word boundaries in raw text."""

    provides: ClassVar[frozenset[Field]] = frozenset({Field.WORD_STARTS})
    languages: ClassVar[frozenset[str] | None] = None
    """ISO 639 codes of the supported languages; None: all that are written with spaces between words."""

    @abstractmethod
    def word_starts(self, text: str) -> Sequence[int]:
        """Ascending character offsets in `text` where words begin; the first non-space character is one of them."""


UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo"})
"""Languages that are written without spaces between words."""
