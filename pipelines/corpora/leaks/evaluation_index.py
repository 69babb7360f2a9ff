"""Overlap of texts with the evaluation texts: equal texts, shared n-grams, or near-duplicates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.corpora.duplicates.minhash import Bands, signatures, similarity
from pipelines.corpora.duplicates.overlap import OverlapIndex
from pipelines.corpora.duplicates.shingles import BATCH, Letters, Shingle, Unit, batches
from pipelines.corpora.shards.tables import Row, read_rows

NEAR_WORDS = 5
"""Length of the shingles with which near-duplicates are detected."""


class EvaluationText(NamedTuple):
    """An evaluation text, its source, and its part of the set."""

    text: str
    source: str
    part: str


@dataclass(frozen=True)
class OverlapRules:
    """When two texts overlap: thresholds of n-gram overlap and of near-duplication."""

    words: int
    """Length of an n-gram, in units."""
    overlap: float
    """Threshold of the overlap coefficient of the sets of n-grams."""
    near: float | None
    """Threshold of the Jaccard index of the sets of five-unit shingles; None: near-duplicates are not detected."""
    unit: Unit


class Hit(NamedTuple):
    """Overlap with an evaluation text: the kind of overlap, the index of that text, and how much, 0 to 1."""

    kind: str
    number: int
    overlap: float


class EvaluationIndex:
    """In-memory index of evaluation texts, to look up batches of other texts."""

    def __init__(self, texts: Sequence[str], rules: OverlapRules) -> None:
        self._rules = rules
        self.grams = OverlapIndex(texts, rules.words, rules.unit)
        self._keys: dict[bytes, int] = {}
        self._near = Bands.for_threshold(rules.near) if rules.near else None
        self._shingle = Shingle(rules.unit, NEAR_WORDS)
        parts, number = [], 0
        for batch in batches(texts):
            letters = Letters.of(batch)
            for each, key in enumerate(letters.text_keys()):
                self._keys.setdefault(key.tobytes(), number + each)
            number += len(batch)
            if self._near:
                parts.append(self._signatures(letters, self._near))
        if self._near and parts:
            self._values = np.concatenate([values for values, _ in parts])
            known = np.flatnonzero(np.concatenate([defined for _, defined in parts]))
            keys = self._near.keys(self._values)[known].reshape(-1)
            order = np.argsort(keys, kind="stable")
            self._bands, self._owners = keys[order], np.repeat(known, self._near.bands)[order]

    def hits(self, letters: Letters) -> list[list[Hit]]:
        """Hits of each text of a batch: at most one of each kind, with the evaluation text of the largest overlap."""
        hits: list[list[Hit]] = [[] for _ in letters.texts]
        if not self._keys:
            return hits
        for number, key in enumerate(letters.text_keys()):
            same = self._keys.get(key.tobytes())
            if same is not None:
                hits[number].append(Hit("exact", same, 1.0))
        overlap, which = self.grams.best(letters)
        for number in np.flatnonzero(overlap >= self._rules.overlap).tolist():
            hits[number].append(Hit("ngram", int(which[number]), float(overlap[number])))
        if self._near:
            for number, other, estimate in self._near_duplicates(letters, self._near):
                hits[number].append(Hit("minhash", other, estimate))
        return hits

    def _near_duplicates(self, letters: Letters, bands: Bands) -> Iterator[tuple[int, int, float]]:
        """Yield the index in the batch, the index of the nearest evaluation text, and the estimated Jaccard index."""
        values, known = self._signatures(letters, bands)
        keys = np.where(known[:, None], bands.keys(values), 0).reshape(-1)
        first = np.searchsorted(self._bands, keys, side="left")
        counts = np.searchsorted(self._bands, keys, side="right") - first
        counts[np.repeat(~known, bands.bands)] = 0
        text = np.repeat(np.arange(len(keys)) // bands.bands, counts)
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs = np.unique(np.stack([text, self._owners[np.repeat(first, counts) + inside]], axis=1), axis=0)
        estimates = similarity(values[pairs[:, 0]], self._values[pairs[:, 1]])
        order = np.lexsort((pairs[:, 1], -estimates, pairs[:, 0]))
        before = -1
        for pair, near in zip(pairs[order].tolist(), estimates[order].tolist(), strict=True):
            if near >= bands.least and pair[0] != before:
                before = pair[0]
                yield pair[0], pair[1], near

    def _signatures(self, letters: Letters, bands: Bands) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        hashes, ends = letters.shingles(self._shingle, shorter=True)
        return signatures(hashes, ends, bands.values), np.diff(ends) > 0


def with_hits(
    rows: Iterable[Row], index: EvaluationIndex, texts: Callable[[Row], Sequence[str]] = lambda row: row[:1]
) -> Iterator[tuple[Row, list[Hit]]]:
    """Yield every row, in order, with the hits of its `texts` in the evaluation texts: of each kind, the largest."""
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(map(len, texts(row)))
        if size >= BATCH:
            yield from _with_hits(batch, index, texts)
            batch, size = [], 0
    if batch:
        yield from _with_hits(batch, index, texts)


def _with_hits(
    batch: Sequence[Row], index: EvaluationIndex, texts: Callable[[Row], Sequence[str]]
) -> Iterator[tuple[Row, list[Hit]]]:
    each = [texts(row) for row in batch]
    hits = iter(index.hits(Letters.of([text for some in each for text in some])))
    for row, some in zip(batch, each, strict=True):
        largest: dict[str, Hit] = {}
        for hit in chain.from_iterable(next(hits) for _ in some):
            if hit.kind not in largest or hit.overlap > largest[hit.kind].overlap:
                largest[hit.kind] = hit
        yield row, list(largest.values())


@cache
def load_index(path: Path, rules: OverlapRules) -> tuple[list[EvaluationText], EvaluationIndex]:
    """Evaluation texts of a table with `text`, `source` and `part`, and their index; built once per process."""
    evaluated = [EvaluationText(*row) for row in read_rows(path)]
    return evaluated, EvaluationIndex([each.text for each in evaluated], rules)
