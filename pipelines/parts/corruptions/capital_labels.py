"""Capitalised words as what is to be predicted (Sun et al. 2019, ERNIE 2.0 §4.2.1)."""

from __future__ import annotations

from typing import ClassVar

from pipelines.parts.corruptions.channel_labels import ChannelLabels
from pipelines.vocabulary import Field

CAPITALS = Field.of_channel("capitals")


class CapitalLabels(ChannelLabels, name="capital_labels"):
    """Class 0 for the tokens of words in small letters, 1 for capitalised ones, of the annotation `capitals`."""

    paper = "arXiv:1907.12412"
    needs = frozenset({Field.INPUT_IDS, CAPITALS})
    channel: ClassVar[Field] = CAPITALS
    values: ClassVar[int] = 2
