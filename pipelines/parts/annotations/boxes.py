"""Boxes of words on a page (Xu et al. 2020, LayoutLM §2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.task_families.tokenized import UNCOVERED
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

LARGEST = 1000
"""Coordinates are normalised to 0 … LARGEST."""
CHANNEL = Channel("boxes", size=LARGEST + 1, shape=(4,), edges=(0, LARGEST))


class Boxes(Annotation, name="boxes"):
    """The box x0, y0, x1, y1 of each token's word, from the upper left corner, in thousandths of the page.

    A page without a size (the column `page`) is as wide and as high as its boxes reach. Special tokens before the text
    have the box 0, 0, 0, 0, those after it 1000, 1000, 1000, 1000, as in the authors' code.
    """

    paper = "arXiv:1912.13318"
    makes = CHANNEL.name

    words: str = "tokens"
    """Column with the words of the page."""
    boxes: str = "boxes"
    """Column with a box for each word, in any unit."""
    page: str = "page"
    """Column with the width and the height of the page in that unit; it may be empty."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (CHANNEL,)

    @property
    def columns(self) -> Mapping[str, str]:
        return {self.words: "list<string>", self.boxes: "list<list<int64>>"}

    @property
    def optional_columns(self) -> tuple[str, ...]:
        return (self.page,)

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        boxes = text.value(self.boxes)
        for number, box in enumerate(boxes):
            if not isinstance(box, Sequence) or len(box) != 4 or not all(isinstance(edge, int) for edge in box):
                raise DataError(f"{text.where}: box {box} of word {number} is not four whole numbers x0, y0, x1, y1")
        given = np.asarray(boxes, dtype=np.int64).reshape(-1, 4)
        words = text.word_indices(self.words)
        if len(given) != len(text.value(self.words)):
            raise DataError(
                f"{text.where}: the column {self.boxes!r} holds {len(given)} boxes for {len(text.value(self.words))} "
                "words"
            )
        scaled = self._scaled(given, text)
        return {CHANNEL.name: np.where((words == UNCOVERED)[:, None], CHANNEL.padding, scaled[words])}

    def _scaled(self, boxes: NDArray[np.int64], text: TokenizedText) -> NDArray[np.int64]:
        size = text.row.get(self.page)
        if size is None or len(size) == 0:
            size = np.maximum(boxes.reshape(-1, 2).max(0, initial=1), 1)
        scale = np.asarray([*size, *size], dtype=np.float64)
        if len(scale) != 4 or scale.min() <= 0:
            raise DataError(f"{text.where}: the column {self.page!r} holds {list(size)}, expected width and height")
        # as in the authors' code: rounded down
        result: NDArray[np.int64] = (LARGEST * (boxes / scale)).astype(np.int64)
        outside = np.flatnonzero(((result < 0) | (result > LARGEST)).any(1))
        if len(outside):
            raise DataError(
                f"{text.where}: box {boxes[outside[0]].tolist()} of word {outside[0]} lies outside the page of "
                f"{list(size)}"
            )
        inverted = np.flatnonzero((boxes[:, 2:] < boxes[:, :2]).any(1))
        if len(inverted):
            raise DataError(f"{text.where}: box {boxes[inverted[0]].tolist()} of word {inverted[0]} is inverted")
        return result
