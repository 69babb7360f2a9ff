"""Words that other parts of the document have too, as what is to be predicted (Sun et al. 2019, ERNIE 2.0 §4.2.1)."""

from __future__ import annotations

from typing import ClassVar

from pipelines.parts.corruptions.channel_labels import ChannelLabels
from pipelines.vocabulary import Field

REPEATED_WORDS = Field.of_channel("repeated_words")


class RepetitionLabels(ChannelLabels, name="repetition_labels"):
    """Class 0 for the tokens of words that stand in one segment of their document, 1 in several, of the annotation
    `repeated_words`."""

    paper = "arXiv:1907.12412"
    needs = frozenset({Field.INPUT_IDS, REPEATED_WORDS})
    channel: ClassVar[Field] = REPEATED_WORDS
    values: ClassVar[int] = 2
