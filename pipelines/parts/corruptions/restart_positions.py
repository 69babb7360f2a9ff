"""Positions of translated sentences (Lample & Conneau 2019, XLM §3.3)."""

from __future__ import annotations

import numpy as np

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field


class RestartPositions(Corruption, name="restart_positions"):
    """Count positions from 0 again where another text begins, so that a word and its translation have close ones.

    The positions of a row's first text stay, and so do those of a document that the layout counts from 0.
    """

    paper = "arXiv:1901.07291"
    needs = frozenset({Field.INPUT_IDS, Field.TEXTS})
    may_read = frozenset({Field.POSITION_IDS})
    provides = frozenset({Field.POSITION_IDS})

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        texts = batch[Field.TEXTS]
        columns = np.broadcast_to(np.arange(texts.shape[1], dtype=np.int64), texts.shape)
        positions = batch.get(Field.POSITION_IDS, columns)
        is_text, is_document = np.zeros((2, *texts.shape), dtype=np.bool_)
        is_text[:, 1:] = texts[:, 1:] != texts[:, :-1]
        is_document[:, 1:] = positions[:, 1:] < positions[:, :-1]
        nearest = np.maximum.accumulate(np.where(is_text | is_document, columns, 0), axis=1)
        first = np.take_along_axis(np.where(is_text, positions, 0), nearest, axis=1)
        return {**batch, Field.POSITION_IDS: positions - first}
