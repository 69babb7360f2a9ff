"""The first text of a document is read, the second is written: a sentence and its translation (McCann et al. 2017,
§3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import Field

SOURCE_IDS = Field.of_rows("source_ids")
"""int64 [B, S]: token ids of the text that is read of each row, IGNORED after its end; at least one token."""
IGNORED = -100
"""After the end of a text, and in place of a second text where a row has no whole document."""


class SecondText(Corruption, name="second_text"):
    """Draw a document of each row, of those whose first text is whole, and write its first and its second text.

    Documents are those of a stage with `texts: [first, second]`. The first of a row may have begun in another row, and
    is not drawn; of the last the second text may be cut. Texts are cut to `longest` tokens. Rows themselves stay as
    they are. In a row without such a document the source is its first token, and the target nothing.
    """

    paper = "arXiv:1708.00107"
    needs = frozenset({Field.INPUT_IDS, Field.DOCUMENTS, Field.TEXTS})
    provides = frozenset({SOURCE_IDS, Field.TARGET_IDS})

    longest: int = Option(64, ge=1, le=1000)
    """Most tokens of a text."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        ids, documents, texts = batch[Field.INPUT_IDS], batch[Field.DOCUMENTS], batch[Field.TEXTS]
        ordinary = is_ordinary(ids, tokens)
        width = min(self.longest, ids.shape[1])
        sources = np.full((len(ids), width), IGNORED, dtype=np.int64)
        targets = sources.copy()
        sources[:, 0] = ids[:, 0]
        for row, draw in enumerate(random.random(len(ids))):
            first, second = (
                _of_text(documents[row], ordinary[row] & (texts[row] == number), documents[row, 0]) for number in (0, 1)
            )
            whole = np.intersect1d(first, second)
            if not len(whole):
                continue
            chosen = whole[int(draw * len(whole))]
            for number, written in ((0, sources), (1, targets)):
                text = ids[row, ordinary[row] & (documents[row] == chosen) & (texts[row] == number)][:width]
                written[row] = IGNORED
                written[row, : len(text)] = text
        return {**batch, SOURCE_IDS: sources, Field.TARGET_IDS: targets}


def _of_text(documents: NDArray[np.int64], of_text: NDArray[np.bool_], begun: np.int64) -> NDArray[np.int64]:
    """The documents that have tokens `of_text`, without `begun`."""
    present = np.unique(documents[of_text])
    others: NDArray[np.int64] = present[present != begun]
    return others
