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
from pipelines.corpora.duplicates.overlap import OverlapIndex, Pairs, largest_of_each
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
        self._keys: dict[bytes, list[int]] = {}
        self._near = Bands.for_threshold(rules.near) if rules.near else None
        self._shingle = Shingle(rules.unit, NEAR_WORDS)
        parts, number = [], 0
        for batch in batches(texts):
            letters = Letters.of(batch)
            for each, key in enumerate(letters.text_keys()):
                self._keys.setdefault(key.tobytes(), []).append(number + each)
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
                hits[number].append(Hit("exact", same[0], 1.0))
        overlap, which = self.grams.best(letters)
        for number in np.flatnonzero(overlap >= self._rules.overlap).tolist():
            hits[number].append(Hit("ngram", int(which[number]), float(overlap[number])))
        if self._near:
            text, other, estimate = largest_of_each(*self._near_duplicates(letters, self._near))
            for number, nearest, near in zip(text.tolist(), other.tolist(), estimate.tolist(), strict=True):
                hits[number].append(Hit("minhash", nearest, near))
        return hits

    def hits_among(self, learned: Iterable[str]) -> list[list[Hit]]:
        """Hits of each evaluation text among the texts `learned`, which are read once and not kept.

        All three kinds are symmetric: the hits are those of the evaluation texts in an index of `learned`, at most one
        of each kind, with the learned text of the largest overlap.
        """
        count = len(self.grams.sizes)
        exact = np.full(count, -1)
        best = {kind: (np.zeros(count), np.full(count, -1)) for kind in ("ngram", "minhash")}
        begin = 0
        for batch in batches(learned):
            letters = Letters.of(batch)
            for number, key in enumerate(letters.text_keys(), begin):
                for same in self._keys.get(key.tobytes(), ()):
                    exact[same] = number if exact[same] < 0 else exact[same]
            pairs = {"ngram": self._at_least(self._rules.overlap, *self.grams.pairs(letters))}
            if self._near and self._keys:
                pairs["minhash"] = self._near_duplicates(letters, self._near)
            for kind, (text, owner, overlap) in pairs.items():
                owner, text, overlap = largest_of_each(owner, text, overlap)
                largest, which = best[kind]
                larger = overlap > largest[owner]
                largest[owner[larger]], which[owner[larger]] = overlap[larger], begin + text[larger]
            begin += len(batch)
        hits = [[Hit("exact", same, 1.0)] if same >= 0 else [] for same in exact.tolist()]
        for kind, (largest, which) in best.items():
            for number in np.flatnonzero(which >= 0).tolist():
                hits[number].append(Hit(kind, int(which[number]), float(largest[number])))
        return hits

    def _near_duplicates(self, letters: Letters, bands: Bands) -> Pairs:
        """Index in the batch, index of an evaluation text, and the estimated Jaccard index of all near-duplicates."""
        values, known = self._signatures(letters, bands)
        keys = np.where(known[:, None], bands.keys(values), 0).reshape(-1)
        first = np.searchsorted(self._bands, keys, side="left")
        counts = np.searchsorted(self._bands, keys, side="right") - first
        counts[np.repeat(~known, bands.bands)] = 0
        text = np.repeat(np.arange(len(keys)) // bands.bands, counts)
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        pairs = np.unique(np.stack([text, self._owners[np.repeat(first, counts) + inside]], axis=1), axis=0)
        estimates = similarity(values[pairs[:, 0]], self._values[pairs[:, 1]])
        return self._at_least(bands.least, pairs[:, 0], pairs[:, 1], estimates)

    @staticmethod
    def _at_least(
        threshold: float, text: NDArray[np.int64], owner: NDArray[np.int64], overlap: NDArray[np.float64]
    ) -> Pairs:
        large = overlap >= threshold
        return text[large], owner[large], overlap[large]

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
