"""Document rotation: a row begins with a random one of its tokens (Lewis et al. 2019, BART §2.2)."""

from __future__ import annotations

import numpy as np

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.rewriting import Rewriting, text_bounds
from pipelines.vocabulary import Field


class DocumentRotation(Rewriting, name="document_rotation"):
    """Rotate each row so that it begins with a uniformly random token: a decoder has to find where the text began.

    What comes before the first and after the last ordinary token stays.
    """

    paper = "arXiv:1910.13461"
    reorders = True

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        begin, end = text_bounds(is_ordinary(clean, tokens))
        size = np.maximum(end - begin, 1)
        shift = (random.random((len(clean), 1)) * size).astype(np.int64)
        columns = np.arange(clean.shape[1])
        inside = (columns >= begin) & (columns < end)
        return self.rearranged(batch, np.where(inside, begin + (columns - begin + shift) % size, columns))
