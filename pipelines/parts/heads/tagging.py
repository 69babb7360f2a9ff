"""Tagging, each word independently."""

from __future__ import annotations

from typing import ClassVar

from pipelines.parts.heads.layer_signals import LAYERS
from pipelines.parts.heads.word_tags import WordTaggingHead
from pipelines.vocabulary import Signal


class TaggingHead(WordTaggingHead, name="tagging"):
    """A tag for every word, predicted independently at its first token.

    Words beyond the length of a row are tagged `O`.
    """

    paper = "arXiv:1810.04805"
    provides = LAYERS | {Signal.TAG_LOGITS}
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.TAG_LOGITS})
