"""Masked sequence-to-sequence learning: one fragment of a row is masked, and predicted by a decoder (Song et al. 2019,
MASS §3.2)."""

from __future__ import annotations

import numpy as np
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import Masking, is_ordinary
from pipelines.vocabulary import Field


class MaskedFragment(Masking, name="masked_fragment"):
    """Mask k consecutive tokens of each row; they alone are the target, at the positions that they have in the row.

        row      x1 x2 x3 x4 x5 x6          k = 3
        input    x1 x2  _  _  _ x6          the encoder reads it
        target    .  .  x3 x4 x5 .          the decoder reads   _ _ _ x3 x4 _   and predicts the target

    The decoder reads no other token of the row, so that it has to take them from the encoder (§3.2). k = 1 is masked
    language modelling; k = all of the row, without random and unchanged tokens, is a language model (§3.3, table 1).
    Where the fragment begins is uniformly random. A special token inside it stays in the input, and is part of the
    target.
    """

    paper = "arXiv:1905.02450"
    provides = Masking.provides | {Field.TARGET_IDS}

    rate: float = Option(0.5, gt=0, le=1)
    """k as a share of a row's ordinary tokens (§4.1: about half)."""
    tokens: int | None = Option(None, ge=1, exclude_if=lambda value: value is None)
    """k as a number of ordinary tokens, in place of `rate`."""

    def unfit_rows(self, length: int) -> str | None:
        if self.tokens is None or self.tokens <= length:
            return None
        return (
            f"a fragment of {self.tokens} tokens is longer than the rows of {length}; lower tokens, or raise "
            "budget.length"
        )

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """`batch` with INPUT_IDS [B, L] masked, and TARGET_IDS [B, L], −100 outside the fragment."""
        clean = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(clean, tokens)
        count = ordinary.sum(1)
        length = self.budget(ordinary) if self.tokens is None else np.int64(self.tokens)
        size = np.minimum(length, count)[:, None]
        begin = (random.random(len(clean)) * (count - size[:, 0] + 1)).astype(np.int64)[:, None]
        rank = np.cumsum(ordinary, axis=1) - 1
        # a special token has the rank of the ordinary one before it: it is inside unless that one is the last
        inside = (rank >= begin) & (rank < begin + size - 1 + ordinary)
        masked = self.mask_positions(batch, np.flatnonzero(inside & ordinary), tokens, random)
        return {**masked, Field.TARGET_IDS: np.where(inside, clean, -100)}
