"""Token deletion: random tokens are left out, without a mask in their place (Lewis et al. 2019, BART §2.2)."""

from __future__ import annotations

import numpy as np
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.rewriting import Rewriting
from pipelines.vocabulary import Field


class TokenDeletion(Rewriting, name="token_deletion"):
    """Delete round(rate · ordinary tokens) of each row: a decoder has to find where tokens are missing, too."""

    paper = "arXiv:1910.13461"

    rate: float = Option(0.15, gt=0, lt=1)
    """Share of a row's ordinary tokens to delete; the paper states none."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(clean, tokens)
        draws = np.where(ordinary, random.random(clean.shape), 2.0)
        ranks = np.argsort(np.argsort(draws, axis=1, kind="stable"), axis=1, kind="stable")
        deleted = ordinary & (ranks < np.rint(self.rate * ordinary.sum(1))[:, None])
        columns = np.broadcast_to(np.arange(clean.shape[1]), clean.shape)
        return self.selected(batch, clean, columns, ~deleted, tokens)
