"""A dialogue up to a turn, and the response in that turn (Wu et al. 2020, TOD-BERT §3.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import PER_MASKED_POSITION, Field

SPEAKERS = Field.of_channel("speakers")
"""int64 [B, L]: number of the speaker of each token, from 1; 0 for tokens of no turn."""


class DialogueResponse(Corruption, name="dialogue_response"):
    """Divide a dialogue before a random response: a row with the turns before it, and one with the response are
    partners.

    A passage of two rows is searched for turns of `responder` that follow another speaker's; turns of one speaker in a
    row are one. The context is the end of what was said before in the same dialogue, the response the beginning of the
    turn, as much of each as fits in a row, in its frame of special tokens; padding follows. A passage without such a
    turn stays two rows without partners.
    """

    paper = "arXiv:2004.06871"
    needs = frozenset({Field.INPUT_IDS, Field.ORIGINAL_IDS, Field.DOCUMENTS, SPEAKERS})
    provides = frozenset({Field.PARTNER, Field.ORIGINAL_IDS, Field.DOCUMENTS, Field.ATTENTION_MASK})
    replaces = PER_MASKED_POSITION | {Field.PERMUTATION_MASK, Field.TARGET_MAPPING}
    needs_tokens = frozenset({"roles"})
    segments = 2
    pairs_segments = True

    responder: int = Option(2, ge=1)
    """Number of the speaker whose turns are responses: 2 for the system."""

    def unfit_rows(self, length: int) -> str | None:
        return None if length >= 4 else "a turn in its frame has at least a mark, a word and two special tokens"

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        kept = {name: value for name, value in batch.items() if name not in self.replaces}
        rows, length = batch[Field.INPUT_IDS].shape
        half = rows // 2
        draws = random.random(half)
        source = np.tile(np.arange(length), (rows, 1))
        owner = np.tile(np.arange(rows)[:, None], (1, length))
        mask, ends = np.ones((rows, length), dtype=np.int64), np.zeros((rows, length), dtype=np.bool_)
        partner = np.full(rows, -1, dtype=np.int64)
        for first in range(half):
            second = first + half
            divided = self._divided(batch, (first, second), draws[first])
            if divided is None:
                continue
            # a row that begins with a special token keeps it
            framed = int(batch[SPEAKERS][first, 0] == 0 and batch[Field.INPUT_IDS][first, 0] in tokens.special)
            room = length - framed - 1
            context, response = divided
            for row, (of_rows, columns) in ((first, context[:, -room:]), (second, response[:, :room])):
                end = framed + len(columns)
                owner[row, framed:end], source[row, framed:end] = of_rows, columns
                ends[row, end], mask[row, end + 1 :] = True, 0
            partner[[first, second]] = second, first
        moving = {
            name: value[owner, source]
            for name, value in kept.items()
            if name in (Field.INPUT_IDS, Field.ORIGINAL_IDS, Field.DOCUMENTS) or name.is_channel
        }
        for name in (Field.INPUT_IDS, Field.ORIGINAL_IDS):
            moving[name] = np.where(mask == 0, tokens.pad, np.where(ends, tokens.end, moving[name]))
        # as where documents are packed: padding belongs to none
        moving[Field.DOCUMENTS] = np.where(mask == 0, -1, moving[Field.DOCUMENTS])
        moving[SPEAKERS] = np.where((mask == 0) | ends, 0, moving[SPEAKERS])
        return {**kept, **moving, Field.ATTENTION_MASK: mask, Field.PARTNER: partner}

    def _divided(
        self, batch: Arrays, rows: tuple[int, int], draw: float
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """int64 [2, C] and [2, R]: rows and columns of the tokens of a context, and of those of its response; None if
        the passage in `rows` has no response. `draw` below 1 chooses among several."""
        speakers, documents = (batch[name][[*rows]] for name in (SPEAKERS, Field.DOCUMENTS))
        row, column = np.nonzero(speakers)
        speaker, document = speakers[row, column], documents[row, column]
        same = document[1:] == document[:-1]
        begins = 1 + np.flatnonzero(same & (speaker[1:] == self.responder) & (speaker[:-1] != self.responder))
        if not len(begins):
            return None
        begin = int(begins[int(draw * len(begins))])
        of_dialogue = document == document[begin]
        locations = np.stack([np.asarray(rows)[row], column])
        position = np.arange(len(speaker))
        leaves = of_dialogue & (speaker != self.responder) & (position > begin)
        end = int(leaves.argmax()) if leaves.any() else len(speaker)
        context = locations[:, of_dialogue & (position < begin)]
        return context, locations[:, of_dialogue & (position >= begin) & (position < end)]
