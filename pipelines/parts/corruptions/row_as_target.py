"""Sequence autoencoding: the target of a row is the row itself (Dai & Le 2015, §2)."""

from __future__ import annotations

import numpy as np

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field

IGNORED = -100
"""Target at padding; torch's losses ignore it."""


class RowAsTarget(Corruption, name="row_as_target"):
    """Write every token of a clean row in TARGET_IDS [B, L], for a decoder that writes the row again.

    Rows stay as the corruptions before this one left them: with none, a decoder copies; after others, it restores the
    tokens that were there before them.
    """

    paper = "arXiv:1511.01432"
    needs = frozenset({Field.INPUT_IDS, Field.ORIGINAL_IDS})
    may_read = frozenset({Field.ATTENTION_MASK})
    provides = frozenset({Field.TARGET_IDS})

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        targets = batch[Field.ORIGINAL_IDS].astype(np.int64)
        if Field.ATTENTION_MASK in batch:
            targets = np.where(batch[Field.ATTENTION_MASK] == 0, IGNORED, targets)
        return {**batch, Field.TARGET_IDS: targets}
