"""Masking of words of sentiment, with what is known of them (Ke et al. 2020, SentiLARE §3.3)."""

from __future__ import annotations

import numpy as np
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import Masking, is_ordinary, word_beginnings
from pipelines.vocabulary import Field

PART_OF_SPEECH, POLARITY = Field.of_channel("part_of_speech"), Field.of_channel("polarity")
MASKED_PART_OF_SPEECH = Field.of_masked_positions("masked_part_of_speech")
"""int64 [M]: part of speech at each predicted position, before masking."""
MASKED_POLARITY = Field.of_masked_positions("masked_polarity")
"""int64 [M]: polarity at each predicted position, before masking."""
UNKNOWN, NEUTRAL = 0, 1
"""Values of the channels that hide them, and that say no sentiment."""


class SentimentMask(Masking, name="sentiment_mask"):
    """Select each whole word by a draw of its own, words of sentiment more often, and hide both channels at it.

    A word of sentiment is one whose first token has a polarity other than neutral. Of a row in which no word was drawn
    the one that was nearest is selected. Part of speech and polarity of selected words become unknown, whatever becomes
    of their tokens.
    """

    paper = "arXiv:1911.02493"
    needs = frozenset({Field.INPUT_IDS, Field.WORD_STARTS, PART_OF_SPEECH, POLARITY})
    provides = Masking.provides | {PART_OF_SPEECH, POLARITY, MASKED_PART_OF_SPEECH, MASKED_POLARITY}

    sentiment_rate: float = Option(0.3, gt=0, lt=1)
    """Share of the words of sentiment to be predicted; `rate` is that of the others."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean, polarity = batch[Field.INPUT_IDS], batch[POLARITY]
        ordinary = is_ordinary(clean, tokens)
        starts = word_beginnings(batch, ordinary)
        first = np.flatnonzero(starts)  # of each word
        word = np.cumsum(starts) - 1  # of each token; entries of other than ordinary tokens are not used
        rates = np.where(polarity.ravel()[first] > NEUTRAL, self.sentiment_rate, self.rate)
        # a word is drawn where its number is below 1
        draws = random.random(len(first)) / rates
        owner = first // clean.shape[1]
        order = np.lexsort((draws, owner))
        chosen = draws < 1
        chosen[order[np.flatnonzero(np.diff(owner[order], prepend=-1))]] = True
        positions = np.flatnonzero(ordinary.ravel())
        positions = positions[chosen[word[positions]]]
        masked = self.mask_positions(batch, positions, tokens, random)
        for channel, labels in ((PART_OF_SPEECH, MASKED_PART_OF_SPEECH), (POLARITY, MASKED_POLARITY)):
            hidden = batch[channel].astype(np.int64).ravel()
            masked[labels] = hidden[positions]
            hidden[positions] = UNKNOWN
            masked[channel] = hidden.reshape(clean.shape)
        return masked
