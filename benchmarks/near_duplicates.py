"""Near-duplicate detection: our MinHash LSH compared with code on datasketch and on rensa, on real texts with planted
near copies."""

from __future__ import annotations

import random
import statistics
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks.harness.benchmark import Benchmark, Setting, missing
from benchmarks.harness.record import Figure, Goal, Measured
from benchmarks.harness.turns import rate, ratio, take_turns, timed
from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.duplicates.minhash import Bands
from pipelines.corpora.duplicates.near_duplicates import Sketches, clusters
from pipelines.corpora.duplicates.overlap import words
from pipelines.corpora.duplicates.shingles import Shingle, unit_of
from pipelines.corpora.duplicates.sketches import SketchedShard
from pipelines.corpora.shards.tables import TEXTS, write_rows

THRESHOLD = 0.8
LENGTH = 5
LANGUAGE = "en"
PEER, RENSA = "datasketch", "plain rensa"
Pairs = set[tuple[int, int]]


class NearDuplicates(Benchmark):
    """Both read the same texts, use shingles of the same length and bands of the same size, and verify candidate pairs
    by the same estimate; one thread each. Copies are planted by replacing words at random until the Jaccard index with
    the original is between 0.8 and 0.9, measured exactly. Recall is the share of planted pairs in one cluster;
    precision is the share of detected pairs whose Jaccard index is at least 0.7 (0.8 minus the estimate's error).
    """

    name = "near_duplicates"
    what = (
        "Near duplicates among documentation strings, some of them planted: our sketches and clusters, compared with "
        "code on datasketch, and on rensa, whose sketches are ours, as their documentation has it, with the same bands "
        "and the same verification, one thread."
    )
    environment: ClassVar[dict[str, str]] = {"OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure=f"against {PEER}", at_least=5),
        Goal(figure=f"against {RENSA}", at_least=1),
        Goal(figure="recall of planted pairs, cursus", at_least=0.95, unit=""),
    )

    def unavailable(self) -> str | None:
        return missing("datasketch")

    def measure(self, setting: Setting) -> Measured:
        documents, copies = (200, 20) if setting.quick else (4000, 400)
        texts = list(islice(dict.fromkeys(text for text, _ in documentation("domain")), documents))
        planted = _planted(texts, copies, LANGUAGE)
        size = sum(len(text.encode()) for text in texts) / 1e6
        bands = Bands.for_threshold(THRESHOLD)
        table = setting.work / "texts.parquet"
        write_rows(table, TEXTS, ((text, str(number), "") for number, text in enumerate(texts)))
        pairs: dict[str, Pairs] = {}
        runs = iter(range(10**6))

        def ours() -> float:
            pairs["cursus"] = _ours(table, len(texts), bands, LANGUAGE, setting.work / f"sketches{next(runs)}")
            return size

        def peer() -> float:
            pairs[PEER] = _datasketch(texts, bands, LANGUAGE)
            return size

        def rensa() -> float:
            pairs[RENSA] = _rensa(texts, bands, LANGUAGE)
            return size

        ways = {"cursus": lambda: timed(ours), PEER: lambda: timed(peer), RENSA: lambda: timed(rensa)}
        take_turns(ways, 1)  # warm-up: builds Unicode tables and loads libraries
        turns = take_turns(ways, 2 if setting.quick else 5)
        figures: list[Figure] = [ratio(f"against {one}", turns["cursus"], turns[one], one) for one in (PEER, RENSA)]
        for name in ways:
            right = [_jaccard(texts[a], texts[b], LANGUAGE) >= 0.7 for a, b in pairs[name]]
            recall = statistics.mean(_together(pair, pairs[name]) for pair in planted)
            figures += [
                Figure(name=f"recall of planted pairs, {name}", value=recall, unit=""),
                Figure(name=f"precision, {name}", value=statistics.mean(right) if right else 1.0, unit=""),
                rate(name, turns[name], "MB/s"),
            ]
        note = f"{len(texts) - len(planted)} texts and {len(planted)} planted near copies, {size:.1f} MB; {bands}"
        return Measured(figures=tuple(figures), turns=turns, notes=(note,))


def _ours(table: Path, count: int, bands: Bands, language: str, folder: Path) -> Pairs:
    folder.mkdir()
    SketchedShard("texts", table, count, Shingle(unit_of(language), LENGTH), bands, None)(folder)
    earliest = clusters([Sketches(folder, 0)], bands, np.ones(count, np.bool_))
    return {(int(head), number) for number, head in enumerate(earliest) if head != number}


def _datasketch(texts: list[str], bands: Bands, language: str) -> Pairs:
    """datasketch as in its documentation: each text queries the index, and is then inserted; clusters are joined like
    ours."""
    from datasketch import MinHash, MinHashLSH

    known: dict[int, MinHash] = {}
    earliest = list(range(len(texts)))
    index = MinHashLSH(threshold=THRESHOLD, num_perm=bands.values, params=(bands.bands, bands.rows))
    for number, text in enumerate(texts):
        shingles = _shingles(text, language)
        if not shingles:
            continue
        sketch = MinHash(num_perm=bands.values)
        sketch.update_batch([shingle.encode() for shingle in shingles])
        for other in index.query(sketch):
            if known[other].jaccard(sketch) >= bands.least:
                roots = sorted({_root(earliest, number), _root(earliest, other)})
                earliest[roots[-1]] = roots[0]
        known[number] = sketch
        index.insert(number, sketch)
    return {(_root(earliest, number), number) for number in range(len(texts)) if _root(earliest, number) != number}


def _rensa(texts: list[str], bands: Bands, language: str) -> Pairs:
    """rensa as in its documentation: each text queries the index, and is then inserted; verified and joined like
    ours."""
    from rensa import RMinHash, RMinHashLSH  # type: ignore[import-untyped]

    known: dict[int, Any] = {}
    earliest = list(range(len(texts)))
    index = RMinHashLSH(threshold=THRESHOLD, num_perm=bands.values, num_bands=bands.bands)
    for number, text in enumerate(texts):
        shingles = _shingles(text, language)
        if not shingles:
            continue
        sketch = RMinHash(num_perm=bands.values, seed=0)
        sketch.update(list(shingles))
        for other in index.query(sketch):
            if known[other].jaccard(sketch) >= bands.least:
                roots = sorted({_root(earliest, number), _root(earliest, other)})
                earliest[roots[-1]] = roots[0]
        known[number] = sketch
        index.insert(number, sketch)
    return {(_root(earliest, number), number) for number in range(len(texts)) if _root(earliest, number) != number}


def _root(earliest: list[int], number: int) -> int:
    while earliest[number] != number:
        number = earliest[number]
    return number


def _shingles(text: str, language: str) -> set[str]:
    units = words(text) if unit_of(language) == "words" else [one for one in text.casefold() if one.isalnum()]
    if not units:
        return set()
    return {" ".join(units[start : start + LENGTH]) for start in range(max(1, len(units) - LENGTH + 1))}


def _jaccard(one: str, other: str, language: str) -> float:
    first, second = _shingles(one, language), _shingles(other, language)
    return len(first & second) / max(1, len(first | second))


def _together(pair: tuple[int, int], pairs: Pairs) -> bool:
    heads = {number: head for head, number in pairs}
    return heads.get(pair[0], pair[0]) == heads.get(pair[1], pair[1])


def _planted(texts: list[str], count: int, language: str) -> Pairs:
    """Append near copies of `count` texts; returns the pairs."""
    chance = random.Random(0)
    vocabulary = [word for text in texts[:200] for word in words(text)]
    pairs: Pairs = set()
    for number in chance.sample(range(len(texts)), len(texts)):
        parts = list(texts[number]) if language in ("zh", "ja", "th") else texts[number].split(" ")
        if len(parts) < 40:
            continue
        for _ in range(len(parts)):
            parts[chance.randrange(len(parts))] = chance.choice(vocabulary)
            mark = "" if len(parts) == len(texts[number]) else " "
            similarity = _jaccard(texts[number], mark.join(parts), language)
            if similarity < 0.9:
                break
        if THRESHOLD <= similarity < 0.9:
            pairs.add((number, len(texts)))
            texts.append(mark.join(parts))
        if len(pairs) == count:
            break
    return pairs
