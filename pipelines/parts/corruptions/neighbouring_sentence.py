"""A sentence and the one before or after it (Kiros et al. 2015, §2.1; Logeswaran & Lee 2018, §2)."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import Field

SOURCE_IDS = Field.of_rows("source_ids")
"""int64 [B, S]: token ids of the sentence that is read of each row, IGNORED after its end; at least one token."""
IGNORED = -100
"""After the end of a sentence, and in place of a neighbour where a row has no two adjacent sentences."""
STOPS = (".", "!", "?", "。", "！", "？", "ãĢĤ", "ï¼ģ", "ï¼Ł")
"""Ends of the tokens that end a sentence; the last three are those of Chinese, as tokenizers of bytes write them."""


class NeighbouringSentence(Corruption, name="neighbouring_sentence"):
    """Draw a sentence of each row, and write its tokens and those of a sentence beside it.

    A token that ends with a full stop ends a sentence, if this has `shortest` tokens; so does the end of a document,
    across which no sentences are neighbours. The first and the last sentence of a row count as they stand in it. Longer
    sentences are cut to `longest` tokens. Rows themselves stay as they are. In a row without two neighbours the source
    is its first token, and the target nothing.
    """

    paper = "arXiv:1506.06726"
    needs = frozenset({Field.INPUT_IDS, Field.DOCUMENTS})
    provides = frozenset({SOURCE_IDS, Field.TARGET_IDS})

    side: Literal["next", "previous", "either"] = "next"
    """Which neighbour is the target; `either`: drawn for each row."""
    shortest: int = Option(4, ge=1, le=1000)
    """Fewest tokens of a sentence, but for the end of a document: a shorter one goes on."""
    longest: int = Option(30, ge=1, le=1000)
    """Most tokens of a sentence (the reference code of both papers leaves out longer ones)."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        ids, documents = batch[Field.INPUT_IDS], batch[Field.DOCUMENTS]
        ordinary = is_ordinary(ids, tokens)
        stops = _stops(tokens.texts)[ids] if tokens.texts else np.zeros_like(ordinary)
        width = min(self.longest, ids.shape[1])
        sources = np.full((len(ids), width), IGNORED, dtype=np.int64)
        targets = sources.copy()
        sources[:, 0] = ids[:, 0]
        draws = random.random((len(ids), 2))
        for row, draw in enumerate(draws):
            begins = sentence_begins(ordinary[row], stops[row], documents[row], self.shortest)
            pairs = [
                (first, second)
                for first, second in pairwise(begins)
                if documents[row, first[0]] == documents[row, second[0]]
            ]
            if not pairs:
                continue
            source, target = pairs[int(draw[0] * len(pairs))]
            if self.side == "previous" or (self.side == "either" and draw[1] < 0.5):
                source, target = target, source
            for written, (begin, end) in ((sources, source), (targets, target)):
                end = min(end, begin + width)
                written[row, : end - begin] = ids[row, begin:end]
        return {**batch, SOURCE_IDS: sources, Field.TARGET_IDS: targets}


def sentence_begins(
    ordinary: NDArray[np.bool_], stops: NDArray[np.bool_], documents: NDArray[np.int64], shortest: int
) -> list[tuple[int, int]]:
    """Begin and end of every sentence of a row, given for each of its tokens [L] whether it belongs to the text, ends a
    sentence, and to which document it belongs. Special tokens are in none."""
    sentences, begin = list[tuple[int, int]](), None
    for at, of_text in enumerate(ordinary):
        if begin is not None and (not of_text or documents[at] != documents[begin]):
            sentences.append((begin, at))
            begin = None
        if not of_text:
            continue
        begin = at if begin is None else begin
        if stops[at] and at + 1 - begin >= shortest:
            sentences.append((begin, at + 1))
            begin = None
    return sentences if begin is None else [*sentences, (begin, len(ordinary))]


@lru_cache(maxsize=4)
def _stops(texts: tuple[str, ...]) -> NDArray[np.bool_]:
    """Whether each token ends a sentence."""
    return np.asarray([one.endswith(STOPS) for one in texts], dtype=np.bool_)
