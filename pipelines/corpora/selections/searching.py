"""Nearest-neighbour search with faiss: exact, or in inverted lists.

    flat             every query is compared with every vector, a block at a time
    inverted lists   k-means of a sample gives the centroids; each file's vectors are put in the lists of their nearest
                     centroids (IndexIVFScalarQuantizer, half precision); a query searches `probes` lists per file

Everything runs on one thread per process, so that sums have a fixed order and results do not depend on the machine's
load.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.corpora.selections.encoding import blocks, rows_between, shape_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Neighbours = tuple[NDArray[np.float32], NDArray[np.int64]]
    """Cosines and indices of the nearest vectors, [Q, k], the nearest first; −inf and −1 where there are fewer."""

FIGURES = "figures.json"
CHOSEN = "chosen.npy"
SHOWN = "shown.json"
_LISTS = "lists.faiss"
_PART = 2**18
"""Vectors in one file of inverted lists, which is read whole."""
_SAMPLE_BYTES = 2**27
"""Memory for the sample that k-means is trained on."""
_VECTORS_PER_LIST = 39
"""Training vectors per list for k-means (the minimum that faiss recommends)."""


@dataclass(frozen=True)
class Centroids:
    """Unit of work: train the centroids of the inverted lists on a sample of vectors."""

    name: str
    domain: tuple[Path, ...]

    def __call__(self, folder: Path) -> None:
        import faiss

        shapes = [shape_of(encoded) for encoded in self.domain]
        count, dimensions = sum(n for n, _ in shapes), max(d for _, d in shapes)
        lists = list_count(count, dimensions)
        step = max(1, count // (_VECTORS_PER_LIST * lists))
        sample = np.concatenate([part[::step] for encoded in self.domain for part in blocks(encoded) if len(part)])
        index = faiss.IndexIVFScalarQuantizer(
            faiss.IndexFlatIP(dimensions), dimensions, lists, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        with one_thread():
            index.train(sample)
        faiss.write_index(index, str(folder / _LISTS))


@dataclass(frozen=True)
class InvertedLists:
    """Unit of work: put the vectors of one file into inverted lists."""

    name: str
    encoded: Path
    centroids: Path

    def __call__(self, folder: Path) -> None:
        import faiss

        for number, part in enumerate(blocks(self.encoded, _PART)):
            index = faiss.read_index(str(self.centroids / _LISTS))
            with one_thread():
                index.add(part)
            faiss.write_index(index, str(folder / f"{number}.faiss"))


@dataclass(frozen=True)
class NeighbourSearch:
    """Unit of work: find the `neighbours` nearest vectors of the queries from `begin` to `end`."""

    name: str
    own: tuple[Path, ...]
    begin: int
    end: int
    domain: tuple[Path, ...]
    neighbours: int
    shown: tuple[int, ...] = ()
    """Queries whose neighbours are written one by one."""
    listed: tuple[Path, ...] = ()

    def __call__(self, folder: Path) -> None:
        queries = rows_between(self.own, self.begin, self.end)
        scores, numbers = nearest(queries, self.domain, self.neighbours, self.listed)
        hits = scores > 0
        np.save(folder / CHOSEN, np.unique(numbers[hits]))
        has_neighbour = hits.any(axis=1)
        last = hits.sum(axis=1)[has_neighbour] - 1
        figures = {
            "asked": int(has_neighbour.sum()),
            "hits": int(hits.sum()),
            "first": float(scores[has_neighbour, 0].sum(dtype=np.float64)),
            "last": float(scores[has_neighbour, last].sum(dtype=np.float64)),
        }
        (folder / FIGURES).write_text(json.dumps(figures))
        shown = {
            number: [
                {"number": int(n), "cosine": round(float(score), 4)}
                for score, n in zip(scores[number - self.begin], numbers[number - self.begin], strict=True)
                if score > 0
            ]
            for number in self.shown
            if self.begin <= number < self.end
        }
        (folder / SHOWN).write_text(json.dumps(shown))


@dataclass(frozen=True)
class RecallCheck:
    """Unit of work: measure the recall of the inverted lists against exact search, for some queries."""

    name: str
    own: tuple[Path, ...]
    queries: tuple[int, ...]
    domain: tuple[Path, ...]
    neighbours: int
    listed: tuple[Path, ...]

    def __call__(self, folder: Path) -> None:
        queries = np.concatenate([rows_between(self.own, number, number + 1) for number in self.queries])
        (_, true), (_, approximate) = (
            nearest(queries, self.domain, self.neighbours, listed) for listed in ((), self.listed)
        )
        shares = [
            len(np.intersect1d(a[a >= 0], b[b >= 0])) / max(1, (a >= 0).sum())
            for a, b in zip(true, approximate, strict=True)
        ]
        (folder / FIGURES).write_text(json.dumps(float(np.mean(shares))))


def nearest(
    queries: NDArray[np.float32], domain: Sequence[Path], neighbours: int, listed: Sequence[Path]
) -> Neighbours:
    """Nearest vectors of `domain` by inner product; searched in the inverted lists `listed` when there are any."""
    best = (
        np.full((len(queries), neighbours), -np.inf, np.float32),
        np.full((len(queries), neighbours), -1, np.int64),
    )
    with one_thread():
        parts = _in_lists(queries, listed, neighbours) if listed else _flat(queries, domain, neighbours)
        for scores, numbers in parts:
            scores = np.where(numbers < 0, np.float32(-np.inf), scores)
            joined = np.concatenate([best[0], scores], axis=1), np.concatenate([best[1], numbers], axis=1)
            # ties: the first in the corpus goes first
            order = np.lexsort((joined[1], -joined[0]), axis=1)[:, :neighbours]
            best = np.take_along_axis(joined[0], order, 1), np.take_along_axis(joined[1], order, 1)
    return best


def _flat(queries: NDArray[np.float32], domain: Sequence[Path], neighbours: int) -> Iterator[Neighbours]:
    import faiss

    first = 0
    for encoded in domain:
        for part in blocks(encoded):
            index = faiss.IndexFlatIP(part.shape[1])
            index.add(part)
            scores, numbers = index.search(queries, min(neighbours, len(part)))
            yield scores, np.where(numbers < 0, -1, numbers + first)
            first += len(part)


def _in_lists(queries: NDArray[np.float32], listed: Sequence[Path], neighbours: int) -> Iterator[Neighbours]:
    import faiss

    first = 0
    for folder in listed:
        for number in range(len(list(folder.glob("*.faiss")))):
            index = faiss.read_index(str(folder / f"{number}.faiss"))
            lists = faiss.extract_index_ivf(index)  # the same index, as its own type
            lists.nprobe = probes(lists.nlist)
            scores, numbers = index.search(queries, min(neighbours, index.ntotal))
            yield scores, np.where(numbers < 0, -1, numbers + first)
            first += index.ntotal


def list_count(count: int, dimensions: int) -> int:
    """Number of lists: 4 · √count, but no more than a sample of 128 MiB can train."""
    return max(
        1, min(int(4 * count**0.5), count // _VECTORS_PER_LIST, _SAMPLE_BYTES // (4 * dimensions * _VECTORS_PER_LIST))
    )


def probes(lists: int) -> int:
    """Number of lists that a query searches: at most 64, a smaller share of a larger corpus."""
    return min(lists, 64)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run matrix products and faiss on one thread."""
    import faiss
    from threadpoolctl import threadpool_limits

    before = faiss.omp_get_max_threads()
    with threadpool_limits(1):
        faiss.omp_set_num_threads(1)
        try:
            yield
        finally:
            faiss.omp_set_num_threads(before)
