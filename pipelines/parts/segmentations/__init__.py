"""Segmentations: where words begin, kept beside the tokens so that a corruption can treat a word as one thing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from pipelines.components import Component
from pipelines.vocabulary import Field


class Segmentation(Component):
    """A way of finding words in raw text."""

    provides: ClassVar[frozenset[Field]] = frozenset({Field.WORD_STARTS})
    languages: ClassVar[frozenset[str] | None] = None
    """ISO 639 codes of the languages whose words it finds; None: every one that is written with spaces between words."""

    @abstractmethod
    def word_starts(self, text: str) -> Sequence[int]:
        """Ascending character offsets in `text` where words begin; the first non-space character is one of them."""


UNSPACED = frozenset({"zh", "ja", "th", "lo", "km", "my", "bo"})
"""Languages that are written without spaces between words."""
