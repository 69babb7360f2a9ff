"""Rows of tokens for corruptions: the worst that can be drawn, and large plain ones."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.vocabulary import Field

SIZE = 40
SPECIAL = (0, 1, 2, 3, 4)
"""Padding, unknown, start, end, mask."""
END, MASK = 3, 4
SENTINELS = tuple(range(SIZE - 1, SIZE - 31, -1))


def token_ids(size: int = SIZE) -> TokenIds:
    """A tokenizer of `size` tokens whose token 5 is a third of the text; a mask treats sentinels like other tokens."""
    counts = np.arange(size, dtype=np.int64)[::-1] + 1
    counts[5] = counts.sum() // 2
    return TokenIds(size, MASK, SPECIAL, pad=0, end=END, sentinels=SENTINELS, counts=counts)


@st.composite
def batches(draw: st.DrawFn, shortest: int = 1) -> Arrays:
    """Rows of any width, framed or not, some with no or one ordinary token, words and documents of any length."""
    rows, length = draw(st.integers(1, 6)), draw(st.integers(shortest, 48))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    ids = random.integers(len(SPECIAL), SIZE - len(SENTINELS), size=(rows, length))
    special = random.random((rows, length)) < draw(st.sampled_from([0, 0.05, 0.5, 0.95, 1]))
    ids[special] = random.choice(SPECIAL[:4], int(special.sum()))
    if draw(st.booleans()):
        ids[:, 0], ids[:, -1] = 2, END
    if draw(st.booleans()):
        ids[0, :] = END
        ids[0, length // 2] = 5
    documents = np.cumsum(ids == END, axis=1)
    words = (random.random((rows, length)) < draw(st.sampled_from([0, 0.1, 0.7, 1]))).astype(np.int64)
    return {Field.INPUT_IDS: ids, Field.ORIGINAL_IDS: ids, Field.DOCUMENTS: documents, Field.WORD_STARTS: words}


def plain(rows: int, length: int, seed: int = 0, size: int = SIZE) -> Arrays:
    """Rows between a start and an end, every token between them an ordinary one."""
    ids = np.random.default_rng(seed).integers(len(SPECIAL), size, size=(rows, length))
    ids[:, 0], ids[:, -1] = 2, END
    return {Field.INPUT_IDS: ids, Field.ORIGINAL_IDS: ids, Field.DOCUMENTS: np.zeros_like(ids)}


def words_of(batch: Arrays) -> list[list[list[int]]]:
    """The words of each row, as lists of flattened positions: found by walking along it, token by token."""
    found = []
    for row, ids in enumerate(batch[Field.INPUT_IDS]):
        words: list[list[int]] = []
        inside = False
        for at, token in enumerate(ids):
            if token in SPECIAL:
                inside = False
                continue
            if not inside or batch[Field.WORD_STARTS][row, at]:
                words.append([])
            words[-1].append(row * len(ids) + at)
            inside = True
        found.append(words)
    return found
