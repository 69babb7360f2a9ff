"""Words of running text, and the word of each of its tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from pipelines.task_families.tokenized import UNCOVERED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
"""A run of letters, with signs inside."""


def running_words(text: TokenizedText) -> tuple[list[str], NDArray[np.int64]]:
    """The W words of `text`, in order, and int64 [T]: the word of each token, UNCOVERED for one that is in none.

    The words are runs of letters; of a text that was tokenized word by word, its own words.
    """
    if not isinstance(text.text, str):
        assert text.words is not None
        return [*text.text], text.words
    matches = list(_WORD.finditer(text.text))
    if not matches:
        return [], np.full(len(text), UNCOVERED, dtype=np.int64)
    begins, ends = (np.asarray(sides, dtype=np.int64) for sides in zip(*(one.span() for one in matches), strict=True))
    last = text.spans[:, 1] - 1
    word = np.minimum(np.searchsorted(ends, last, side="right"), len(matches) - 1)
    inside = (begins[word] <= last) & (last < ends[word])
    return [one[0] for one in matches], np.where(inside, word, UNCOVERED)
