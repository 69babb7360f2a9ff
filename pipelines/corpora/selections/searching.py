"""The nearest vectors of some questions, by faiss: exactly, or in the nearest of the lists that the vectors are cut into.

    flat             every question is compared with every vector, a block at a time
    inverted lists   k-means of a sample gives the lists' centres; each file's vectors are put in the lists of the nearest
                     centres (IndexIVFScalarQuantizer, half precision); a question looks into `probes` lists of each

Everything runs on one thread a process, so that sums have one order and the result does not depend on the machine's load.
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
    """Cosines and numbers of the nearest, [Q, k], the nearest first; −inf and −1 where there are fewer."""

FIGURES = "figures.json"
CHOSEN = "chosen.npy"
SHOWN = "shown.json"
_LISTS = "lists.faiss"
_PART = 2**18
"""Vectors in one file of lists, all of which are read at once."""
_SAMPLE_BYTES = 2**27
_A_LIST = 39
"""Vectors that k-means wants to see of each list."""


@dataclass(frozen=True)
class Centroids:
    """A unit of work: lists without vectors, their centres learned from a sample."""

    name: str
    domain: tuple[Path, ...]

    def __call__(self, folder: Path) -> None:
        import faiss

        shapes = [shape_of(encoded) for encoded in self.domain]
        count, dimensions = sum(n for n, _ in shapes), max(d for _, d in shapes)
        lists = list_count(count, dimensions)
        step = max(1, count // (_A_LIST * lists))
        sample = np.concatenate([part[::step] for encoded in self.domain for part in blocks(encoded) if len(part)])
        index = faiss.IndexIVFScalarQuantizer(
            faiss.IndexFlatIP(dimensions), dimensions, lists, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        with one_thread():
            index.train(sample)
        faiss.write_index(index, str(folder / _LISTS))


@dataclass(frozen=True)
class InvertedLists:
    """A unit of work: the vectors of one file in their lists."""

    name: str
    encoded: Path
    centres: Path

    def __call__(self, folder: Path) -> None:
        import faiss

        for number, part in enumerate(blocks(self.encoded, _PART)):
            index = faiss.read_index(str(self.centres / _LISTS))
            with one_thread():
                index.add(part)
            faiss.write_index(index, str(folder / f"{number}.faiss"))


@dataclass(frozen=True)
class NeighbourSearch:
    """A unit of work: which vectors are among the `neighbours` nearest of the questions from `begin` to `end`."""

    name: str
    own: tuple[Path, ...]
    begin: int
    end: int
    domain: tuple[Path, ...]
    neighbours: int
    shown: tuple[int, ...] = ()
    """Questions whose neighbours are kept one by one."""
    listed: tuple[Path, ...] = ()

    def __call__(self, folder: Path) -> None:
        questions = rows_between(self.own, self.begin, self.end)
        scores, numbers = nearest(questions, self.domain, self.neighbours, self.listed)
        hits = scores > 0
        np.save(folder / CHOSEN, np.unique(numbers[hits]))
        some = hits.any(axis=1)
        last = hits.sum(axis=1)[some] - 1
        figures = {
            "asked": int(some.sum()),
            "hits": int(hits.sum()),
            "first": float(scores[some, 0].sum(dtype=np.float64)),
            "last": float(scores[some, last].sum(dtype=np.float64)),
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
    """A unit of work: how many of the truly nearest vectors the lists find, for some questions."""

    name: str
    own: tuple[Path, ...]
    questions: tuple[int, ...]
    domain: tuple[Path, ...]
    neighbours: int
    listed: tuple[Path, ...]

    def __call__(self, folder: Path) -> None:
        questions = np.concatenate([rows_between(self.own, number, number + 1) for number in self.questions])
        (_, true), (_, found) = (
            nearest(questions, self.domain, self.neighbours, listed) for listed in ((), self.listed)
        )
        shares = [
            len(np.intersect1d(a[a >= 0], b[b >= 0])) / max(1, (a >= 0).sum()) for a, b in zip(true, found, strict=True)
        ]
        (folder / FIGURES).write_text(json.dumps(float(np.mean(shares))))


def nearest(
    questions: NDArray[np.float32], domain: Sequence[Path], neighbours: int, listed: Sequence[Path]
) -> Neighbours:
    """The nearest vectors of `domain` by inner product; by its lists, in the same order, where there are any."""
    best = (
        np.full((len(questions), neighbours), -np.inf, np.float32),
        np.full((len(questions), neighbours), -1, np.int64),
    )
    with one_thread():
        parts = _in_lists(questions, listed, neighbours) if listed else _flat(questions, domain, neighbours)
        for scores, numbers in parts:
            scores = np.where(numbers < 0, np.float32(-np.inf), scores)
            joined = np.concatenate([best[0], scores], axis=1), np.concatenate([best[1], numbers], axis=1)
            # where two are equally near, the first of the corpus goes first
            order = np.lexsort((joined[1], -joined[0]), axis=1)[:, :neighbours]
            best = np.take_along_axis(joined[0], order, 1), np.take_along_axis(joined[1], order, 1)
    return best


def _flat(questions: NDArray[np.float32], domain: Sequence[Path], neighbours: int) -> Iterator[Neighbours]:
    import faiss

    first = 0
    for encoded in domain:
        for part in blocks(encoded):
            index = faiss.IndexFlatIP(part.shape[1])
            index.add(part)
            scores, numbers = index.search(questions, min(neighbours, len(part)))
            yield scores, np.where(numbers < 0, -1, numbers + first)
            first += len(part)


def _in_lists(questions: NDArray[np.float32], listed: Sequence[Path], neighbours: int) -> Iterator[Neighbours]:
    import faiss

    first = 0
    for folder in listed:
        for number in range(len(list(folder.glob("*.faiss")))):
            index = faiss.read_index(str(folder / f"{number}.faiss"))
            lists = faiss.extract_index_ivf(index)  # the same index, as what it is
            lists.nprobe = probes(lists.nlist)
            scores, numbers = index.search(questions, min(neighbours, index.ntotal))
            yield scores, np.where(numbers < 0, -1, numbers + first)
            first += index.ntotal


def list_count(count: int, dimensions: int) -> int:
    """How many lists: four times the root of the number of vectors, as many as a sample in 128 MiB can teach."""
    return max(1, min(int(4 * count**0.5), count // _A_LIST, _SAMPLE_BYTES // (4 * dimensions * _A_LIST)))


def probes(lists: int) -> int:
    """How many lists a question looks into: the larger the corpus, the smaller a part of it."""
    return min(lists, 64)


@contextmanager
def one_thread() -> Iterator[None]:
    """Matrix products and faiss on one thread."""
    import faiss
    from threadpoolctl import threadpool_limits

    before = faiss.omp_get_max_threads()
    with threadpool_limits(1):
        faiss.omp_set_num_threads(1)
        try:
            yield
        finally:
            faiss.omp_set_num_threads(before)
