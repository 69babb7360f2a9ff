"""A masked mention, to be found where the text repeats it (Liu et al. 2017, arXiv:1606.01603, §2.1)."""

from __future__ import annotations

import numpy as np
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.channel_labels import IGNORED
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.word_tokens import word_tokens
from pipelines.vocabulary import Field


class RepeatedMention(Corruption, name="repeated_mention"):
    """Mask one token that its document has again in the row: class 1 where the same word is repeated, 0 elsewhere.

    Pseudo-data for zero pronouns: what is left out is found in the text around it. The paper takes nouns and pronouns;
    here a mention is a token of a few letters that is neither unique in the row nor frequent there. A row without any
    has no labels.
    """

    paper = "arXiv:1606.01603"
    needs = frozenset({Field.INPUT_IDS, Field.DOCUMENTS})
    provides = frozenset({Field.TAG_LABELS})
    needs_tokens = frozenset({"mask"})

    letters: int = Option(4, ge=1)
    """Fewest letters of a mention."""
    most: int = Option(6, ge=2)
    """Most occurrences of a mention in its row: words without content have more."""

    @property
    def classes(self) -> int:
        return 2

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        ids, documents = batch[Field.INPUT_IDS], batch[Field.DOCUMENTS]
        ordinary = is_ordinary(ids, tokens)
        named = word_tokens(tokens, self.letters)[ids]
        same = (ids[:, :, None] == ids[:, None, :]) & (documents[:, :, None] == documents[:, None, :])
        times = (same & named[:, :, None]).sum(1)
        possible = named & (times >= 2) & (times <= self.most)
        rows = np.arange(len(ids))
        chosen = np.where(possible, random.random(ids.shape), -1).argmax(1)
        hidden = np.zeros_like(possible)
        hidden[rows, chosen] = possible.any(1)
        labels = np.where(ordinary & ~hidden, same[rows, chosen].astype(np.int64), IGNORED)
        return {
            **batch,
            Field.INPUT_IDS: np.where(hidden, tokens.mask, ids),
            Field.TAG_LABELS: np.where(possible.any(1)[:, None], labels, IGNORED),
        }
