"""Every word of a row as the centre of what is around it (Collobert & Weston 2008, §3; Melamud et al. 2016, §3.1)."""

from __future__ import annotations

import numpy as np

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import Field

CENTER_TOKENS = Field.of_rows("center_tokens")
"""int64 [B, L]: 1 for a token that is a centre; N in all, in the order of `CENTERS`."""


class EveryWord(Corruption, name="every_word"):
    """Make every word a centre, and leave the row, with the order of its words, to the head; special tokens are none.

    Unlike `context_windows` it drops no words and draws nothing.
    """

    paper = "Collobert & Weston 2008"
    needs = frozenset({Field.INPUT_IDS})
    provides = frozenset({Field.CENTERS, CENTER_TOKENS})

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """`batch` with CENTERS [N], row by row, and CENTER_TOKENS [B, L]."""
        ids = batch[Field.INPUT_IDS]
        words = is_ordinary(ids, tokens)
        return {**batch, Field.CENTERS: ids[words], CENTER_TOKENS: words.astype(np.int64)}
