"""A tag for every word, each by itself."""

from __future__ import annotations

from typing import ClassVar

from pipelines.parts.heads.word_tags import WordTaggingHead
from pipelines.vocabulary import Signal


class TaggingHead(WordTaggingHead, name="tagging"):
    """A tag for every word, read at its first token, each word by itself. Words beyond the length of a row are answered `O`."""

    paper = "arXiv:1810.04805"
    provides = frozenset({Signal.TAG_LOGITS, Signal.HIDDEN_STATES})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.TAG_LOGITS})
