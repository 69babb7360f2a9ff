"""Words cut into the subwords of a student's vocabulary, among those of the teacher's (Zhao et al. 2019, §3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.rewriting import Rewriting, attention_mask
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

INSIDE = "##"
"""Prefix of a token that does not begin a word."""


class MixedSubwords(Rewriting, name="mixed_subwords"):
    """Cut some words of each row into tokens of the student's vocabulary, so that the vectors of these learn in the
    context of the teacher's tokens.

    Each word is drawn by itself. It is cut greedily into the longest tokens, as WordPiece does; a word that the
    student's vocabulary cannot write, or whose beginning the row does not hold, stays. A row keeps its width L: what
    no longer fits is cut off at its end.
    """

    paper = "arXiv:1909.11687"
    may_read = frozenset({Field.ATTENTION_MASK, Field.WORD_STARTS})
    needs_tokens = frozenset({"student_tokens"})

    share: float = Option(0.5, gt=0, le=1)
    """Probability of a word to be cut into the student's tokens (§4.1)."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        begins, inside = _kinds(tokens.texts, tokens.special, tokens.size)
        real = attention_mask(batch) == 1
        chosen = begins[clean] & real & (random.random(clean.shape) < self.share)
        student = _student(tokens.texts, tokens.student_tokens)
        rows = [
            _cut(ids, drawn, within, student)
            for ids, drawn, within in zip(clean.tolist(), chosen.tolist(), (inside[clean] & real).tolist(), strict=True)
        ]
        width = max(len(row) for row in rows)
        ids, columns, later = np.zeros((3, len(rows), width), dtype=np.int64)
        for index, row in enumerate(rows):
            ids[index, : len(row)], columns[index, : len(row)], later[index, : len(row)] = np.array(row).T
        held = np.take_along_axis(real, columns, 1) & (np.arange(width) < [[len(row)] for row in rows])
        result = self.selected(batch, ids, columns, held, tokens)
        if Field.WORD_STARTS in result:
            of_word = np.zeros_like(clean)
            common = min(width, clean.shape[1])
            of_word[:, :common] = later[:, :common]
            result[Field.WORD_STARTS] = np.where(of_word == 1, 0, result[Field.WORD_STARTS])
        return result


def _cut(
    ids: list[int], drawn: list[bool], inside: list[bool], student: StudentVocabulary
) -> list[tuple[int, int, int]]:
    """For each token of the new row: its id, the column whose channels it has, 1 if it continues a drawn word."""
    row: list[tuple[int, int, int]] = []
    at = 0
    while at < len(ids):
        end = at + 1
        if drawn[at]:
            while end < len(ids) and inside[end]:
                end += 1
            pieces = student.pieces(tuple(ids[at:end]))
            row += [(piece, min(at + number, end - 1), int(number > 0)) for number, piece in enumerate(pieces)]
        else:
            row.append((ids[at], at, 0))
        at = end
    return row


@lru_cache(maxsize=8)
def _kinds(texts: tuple[str, ...], special: tuple[int, ...], size: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """bool [V] twice: the tokens that begin a word, and those that continue one."""
    inside = np.zeros(size, dtype=np.bool_)
    inside[: len(texts)] = [text.startswith(INSIDE) for text in texts]
    ordinary = is_ordinary(np.arange(size), TokenIds(size, -1, special)) & (np.arange(size) < len(texts))
    return ordinary & ~inside, ordinary & inside


class StudentVocabulary:
    """Cuts words into the first `count` of the tokens `texts`, greedily from the left; each word once."""

    def __init__(self, texts: tuple[str, ...], count: int) -> None:
        self._texts = texts
        self._ids = {text: number for number, text in enumerate(texts[:count])}
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}

    def pieces(self, word: tuple[int, ...]) -> tuple[int, ...]:
        """The student's tokens of the word whose tokens are `word`; these where it has none."""
        if word not in self._known:
            first, *rest = (self._texts[token] for token in word)
            text = first + "".join(one.removeprefix(INSIDE) for one in rest)
            self._known[word] = tuple(self._longest_first(text)) or word
        return self._known[word]

    def _longest_first(self, text: str) -> Sequence[int]:
        """The ids of the longest tokens that write `text`, from its beginning; none where they cannot."""
        pieces: list[int] = []
        begin = 0
        while begin < len(text):
            prefix = INSIDE if begin else ""
            fitting = (end for end in range(len(text), begin, -1) if prefix + text[begin:end] in self._ids)
            if (end := next(fitting, None)) is None:
                return ()
            pieces.append(self._ids[prefix + text[begin:end]])
            begin = end
        return pieces


@lru_cache(maxsize=4)
def _student(texts: tuple[str, ...], count: int) -> StudentVocabulary:
    return StudentVocabulary(texts, count)
