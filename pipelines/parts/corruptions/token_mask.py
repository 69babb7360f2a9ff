"""Random token masking, drawn anew each time a text is read (Devlin et al. 2018, §3.1; dynamic: Liu et al. 2019,
§4.1)."""

from __future__ import annotations

import numpy as np

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import Masking, is_ordinary
from pipelines.vocabulary import Field


class TokenMask(Masking, name="token_mask"):
    """Select a share of each row's tokens to predict; most become the mask token, some a random one.

    The number selected in a row is exactly round(rate · ordinary tokens), at least one, instead of BERT's independent
    draws: so batch shapes are constant, and the expected share is the same.
    """

    paper = "arXiv:1810.04805"

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(clean, tokens)
        draws = np.where(ordinary, random.random(clean.shape, dtype=np.float32), np.float32(2))
        budget = self.budget(ordinary)
        most = int(budget.max())
        candidates = np.argpartition(draws, min(most, draws.shape[1] - 1), axis=1)[:, :most]
        if budget.min() < most:
            # a row with a smaller budget than the largest takes its smallest draws
            order = np.argsort(np.take_along_axis(draws, candidates, 1), axis=1)
            candidates = np.take_along_axis(candidates, order, 1)
        chosen = candidates + np.arange(len(clean))[:, None] * clean.shape[1]
        chosen = chosen[(np.arange(most) < budget[:, None]) & (draws.ravel()[chosen] < 2)]
        return self.mask_positions(batch, np.sort(chosen), tokens, random)
