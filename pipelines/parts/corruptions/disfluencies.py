"""Disfluencies made in fluent text: words are repeated, inserted or left out, and to be told from it (Wang et al. 2020,
arXiv:1908.05378, §2.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.channel_labels import IGNORED
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.rewriting import Rewriting
from pipelines.vocabulary import Field

TEXT, ADDED, BEFORE_GAP = range(3)
REPEATED, INSERTED, DELETED = range(3)


class Disfluencies(Rewriting, name="disfluencies"):
    """Repeat, insert and delete a few tokens: class 1 for tokens that were added, 2 before a gap, 0 for all others.

    A repetition is said before what it repeats, as in speech. The paper inserts words of other texts, and tells gaps
    only as a class of the whole sentence; here the inserted tokens are from elsewhere in the row. Where a row becomes
    too long, its last ordinary tokens are left out.
    """

    paper = "arXiv:1908.05378"
    provides = Rewriting.provides | {Field.TAG_LABELS}
    reorders = True

    rate: float = Option(0.1, gt=0, lt=1)
    """Share of ordinary tokens before which something happens, a third of the times each kind."""
    longest: int = Option(3, ge=1)
    """Most tokens that are added or left out at once; the number is drawn evenly."""

    @property
    def classes(self) -> int:
        return 3

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        rows, length = clean.shape
        ordinary = is_ordinary(clean, tokens)
        begins = ordinary & (random.random(clean.shape) < self.rate)
        kind = random.integers(3, size=clean.shape)
        size = random.integers(1, self.longest + 1, size=clean.shape)
        elsewhere = random.integers(length, size=clean.shape)
        columns = np.arange(length)
        gap = np.zeros_like(begins)
        for step in range(min(self.longest, length)):
            reaches = begins & (kind == DELETED) & (size > step)
            gap[:, step:] |= reaches[:, : length - step]
        kept = ~(gap & ordinary)
        # before each column `longest` places for what is added there, then the column itself
        first = np.where(kind == REPEATED, columns, elsewhere)
        source = first[:, :, None] + np.arange(self.longest + 1)
        source[:, :, -1] = columns
        added = (begins & (kind != DELETED))[:, :, None] & (np.arange(self.longest) < size[:, :, None])
        inside = source[:, :, :-1] < length
        source = np.minimum(source, length - 1).reshape(rows, -1)
        real = np.take_along_axis(ordinary, source, axis=1)
        keep = np.concatenate([added & inside, kept[:, :, None]], axis=2)
        of_text = np.zeros_like(keep)
        of_text[:, :, -1] = True
        keep, of_text = keep.reshape(rows, -1), of_text.reshape(rows, -1)
        keep &= real | of_text
        keep = _shortened(keep, real, length)
        labels = np.where(of_text, np.where(real, TEXT, IGNORED), ADDED)
        labels = np.where(of_text & real & self._before_gap(kept, columns, source), BEFORE_GAP, labels)
        order = np.argsort(~keep, axis=1, kind="stable")[:, :length]
        taken = np.take_along_axis(np.where(keep, labels, IGNORED), order, axis=1)
        result = self.selected(batch, np.take_along_axis(clean, source, axis=1), source, keep, tokens)
        return {**result, Field.TAG_LABELS: taken}

    @staticmethod
    def _before_gap(
        kept: NDArray[np.bool_], columns: NDArray[np.int64], source: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Bool [B, S]: whether the column after each of `source` [B, S] is one that is not `kept` [B, L]."""
        gone = np.zeros_like(kept)
        gone[:, :-1] = kept[:, :-1] & ~kept[:, 1:]
        result: NDArray[np.bool_] = np.take_along_axis(gone, source, axis=1)
        return result


def _shortened(keep: NDArray[np.bool_], ordinary: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """`keep` [B, S] without the last ordinary tokens of rows that keep more than `length`."""
    excess = np.maximum(keep.sum(1) - length, 0)[:, None]
    droppable = keep & ordinary
    behind = np.cumsum(droppable[:, ::-1], axis=1)[:, ::-1]
    result: NDArray[np.bool_] = keep & ~(droppable & (behind <= excess))
    return result
