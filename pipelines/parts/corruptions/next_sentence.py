"""Next sentence prediction: half of the pairs of segments are no neighbours (Devlin et al. 2018, §3.1, task 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.segment_pairs import SegmentPairs
from pipelines.vocabulary import Field


class NextSentence(SegmentPairs, name="next_sentence"):
    """Divide each row into two segments; half of the time the second is that of another row instead, of other
    documents.

    The paper's segments are spans of contiguous text too. Another row is drawn from those read together, which windows
    take from anywhere in the corpus; where none is of other documents, the second segment stays.
    """

    paper = "arXiv:1810.04805"

    replaced: float = Option(0.5, gt=0, lt=1)
    """Share of the pairs whose second segment is random."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        splits = self.splits(batch, tokens, random)
        source = self._sources(batch[Field.DOCUMENTS], splits, random)
        columns = np.arange(batch[Field.INPUT_IDS].shape[1])
        second = (columns > splits[:, None]) & (source != np.arange(len(source)))[:, None]
        moved = {
            # token ids, documents and channels; positions stay where they are
            name: np.where(second.reshape(*second.shape, *(1,) * (value.ndim - 2)), value[source], value)
            for name, value in batch.items()
            if name in (Field.INPUT_IDS, Field.ORIGINAL_IDS, Field.DOCUMENTS) or name.is_channel
        }
        labels = (source != np.arange(len(source))).astype(np.int64)
        kept = {name: value for name, value in batch.items() if name not in self.replaces}
        return self.divided({**kept, **moved}, splits, tokens, labels)

    def _sources(
        self, documents: NDArray[np.int64], splits: NDArray[np.int64], random: np.random.Generator
    ) -> NDArray[np.int64]:
        """int64 [B]: the row that the second segment of each row is taken from, at the same columns; mostly its own."""
        rows = np.arange(len(documents))
        replaced = random.random(len(rows)) < self.replaced
        # documents of a row ascend: its tail in [begins, ends], the first segment in [first, last]
        begins, ends = documents[:, np.minimum(splits + 1, documents.shape[1] - 1)].T, documents[:, -1]
        first, last = documents[:, :1], documents[rows, splits][:, None]
        others = (begins > last) | (ends < first)
        draws = np.where(others, random.random(others.shape, dtype=np.float32), np.float32(-1))
        exchanged = replaced & (splits >= 0) & others.any(1)
        return np.where(exchanged, draws.argmax(1), rows)
