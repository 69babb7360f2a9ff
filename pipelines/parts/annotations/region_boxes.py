"""Boxes of the regions of an image, beside a text about it (Su et al. 2020, VL-BERT §3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.annotations.boxes import CHANNEL, LARGEST, Boxes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

WHOLE = (0, 0, LARGEST, LARGEST)


class RegionBoxes(Boxes, name="region_boxes"):
    """The box of each region, in thousandths of the image; a token of a text about it has the box of the whole image.

    Boxes of regions are read and checked as the annotation `boxes` does.
    """

    paper = "arXiv:1908.08530"

    words: str = "regions"
    """Column with the words of the regions."""
    page: str = "size"
    """Column with the width and the height of the image; it may be empty."""

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        if text.column != self.words:
            return {CHANNEL.name: np.tile(np.asarray(WHOLE, dtype=np.int64), (len(text), 1))}
        return super().annotate(text)
