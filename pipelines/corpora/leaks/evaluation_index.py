"""What other texts have in common with the evaluation texts: the same text, runs of words, or nearly the same text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.corpora.duplicates.minhash import Bands, signatures, similarity
from pipelines.corpora.duplicates.overlap import OverlapIndex
from pipelines.corpora.duplicates.shingles import BATCH, Letters, Shingle, Unit, batches
from pipelines.corpora.shards.tables import Row, read_rows

NEAR_WORDS = 5
"""Length of the runs whose sets near copies nearly share."""


class EvaluationText(NamedTuple):
    """An evaluation text and where it stands."""

    text: str
    source: str
    part: str


@dataclass(frozen=True)
class OverlapRules:
    """From when on texts overlap: share of runs of `words` units, and Jaccard index of sets of runs of five."""

    words: int
    overlap: float
    near: float | None
    unit: Unit


class Hit(NamedTuple):
    """What a text has in common with an evaluation text, its number, and how much of it, 0 to 1."""

    kind: str
    number: int
    overlap: float


class EvaluationIndex:
    """Evaluation texts in memory, asked about batches of other texts."""

    def __init__(self, texts: Sequence[str], rules: OverlapRules) -> None:
        self._rules = rules
        self.grams = OverlapIndex(texts, rules.words, rules.unit)
        self._keys: dict[bytes, int] = {}
        self._near = Bands.for_threshold(rules.near) if rules.near else None
        self._shingle = Shingle(rules.unit, NEAR_WORDS)
        found, number = [], 0
        for batch in batches(texts):
            letters = Letters.of(batch)
            for each, key in enumerate(letters.text_keys()):
                self._keys.setdefault(key.tobytes(), number + each)
            number += len(batch)
            if self._near:
                found.append(self._signatures(letters, self._near))
        if self._near and found:
            self._values = np.concatenate([values for values, _ in found])
            known = np.flatnonzero(np.concatenate([some for _, some in found]))
            keys = self._near.keys(self._values)[known].reshape(-1)
            order = np.argsort(keys, kind="stable")
            self._bands, self._owners = keys[order], np.repeat(known, self._near.bands)[order]

    def hits(self, letters: Letters) -> list[list[Hit]]:
        """For each text of a batch: at most one hit of each kind, with the evaluation text it has most in common with."""
        found: list[list[Hit]] = [[] for _ in letters.texts]
        if not self._keys:
            return found
        for number, key in enumerate(letters.text_keys()):
            same = self._keys.get(key.tobytes())
            if same is not None:
                found[number].append(Hit("exact", same, 1.0))
        overlap, which = self.grams.best(letters)
        for number in np.flatnonzero(overlap >= self._rules.overlap).tolist():
            found[number].append(Hit("ngram", int(which[number]), float(overlap[number])))
        if self._near:
            for number, other, alike in self._alike(letters, self._near):
                found[number].append(Hit("minhash", other, alike))
        return found

    def _alike(self, letters: Letters, bands: Bands) -> Iterator[tuple[int, int, float]]:
        values, known = self._signatures(letters, bands)
        keys = np.where(known[:, None], bands.keys(values), 0).reshape(-1)
        first = np.searchsorted(self._bands, keys, side="left")
        counts = np.searchsorted(self._bands, keys, side="right") - first
        counts[np.repeat(~known, bands.bands)] = 0
        text = np.repeat(np.arange(len(keys)) // bands.bands, counts)
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs = np.unique(np.stack([text, self._owners[np.repeat(first, counts) + inside]], axis=1), axis=0)
        alike = similarity(values[pairs[:, 0]], self._values[pairs[:, 1]])
        order = np.lexsort((pairs[:, 1], -alike, pairs[:, 0]))
        before = -1
        for pair, near in zip(pairs[order].tolist(), alike[order].tolist(), strict=True):
            if near >= bands.least and pair[0] != before:
                before = pair[0]
                yield pair[0], pair[1], near

    def _signatures(self, letters: Letters, bands: Bands) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        hashes, ends = letters.shingles(self._shingle, shorter=True)
        return signatures(hashes, ends, bands.values), np.diff(ends) > 0


def with_hits(rows: Iterable[Row], index: EvaluationIndex) -> Iterator[tuple[Row, list[Hit]]]:
    """Every row, in order, with what it has in common with evaluation texts."""
    held: list[Row] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row[0])
        if size >= BATCH:
            yield from zip(held, index.hits(Letters.of([each[0] for each in held])), strict=True)
            held, size = [], 0
    if held:
        yield from zip(held, index.hits(Letters.of([each[0] for each in held])), strict=True)


@cache
def load_index(path: Path, rules: OverlapRules) -> tuple[list[EvaluationText], EvaluationIndex]:
    """The evaluation texts in a table of `text`, `source` and `part`, and their index; made once a process."""
    found = [EvaluationText(*row) for row in read_rows(path)]
    return found, EvaluationIndex([each.text for each in found], rules)
