"""Nearest-neighbour search as units of work: fit, encode, build inverted lists where they pay, search.

One byte per domain text is kept in memory, and on disk its vector, two bytes per dimension. Queries are searched in
blocks, so that neither their number nor that of the texts is limited by memory.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.corpora.selections import Pool, SelectionResult
from pipelines.corpora.selections.encoding import EncodedFile, LearnedVectors, evenly, shape_of, texts_at
from pipelines.corpora.selections.searching import (
    CHOSEN,
    FIGURES,
    SHOWN,
    Centroids,
    InvertedLists,
    NeighbourSearch,
    RecallCheck,
    list_count,
)
from pipelines.corpora.vectors import TextVectors

QUERIES = 1024
"""Queries searched at once."""
LISTS_FROM = 200_000
"""Number of domain texts from which inverted lists may pay."""
QUERIES_PER_LIST = 10
"""Queries per list from which they do pay: building compares every text with every centroid, and a search in a list is
no matrix product."""
QUERIES_CHECKED = 64
"""Queries that are also searched exactly, to measure the recall of the lists."""
SHOWN_QUERIES = 5
SHOWN_NEIGHBOURS = 3
EXCERPT = 300
_SEARCH_MEMORY = 320 * 2**20


@dataclass(frozen=True)
class Neighbourhood:
    """Nearest-neighbour selection for the task's own texts in a pool."""

    pool: Pool
    vectors: TextVectors
    neighbours: int
    index: str | None

    def select(self) -> SelectionResult:
        """Select the texts that are among the nearest neighbours of any of the task's; report their similarity."""
        own, domain = self._encoded()
        queries = sum(self.pool.own.values())
        lists = self._lists(domain, queries)
        shown = tuple(evenly(queries, SHOWN_QUERIES))
        units = [
            NeighbourSearch(
                f"{begin:09d}",
                own,
                begin,
                min(begin + QUERIES, queries),
                domain,
                self.neighbours,
                shown,
                lists,
            )
            for begin in range(0, queries, QUERIES)
        ]
        folders = self.pool.run_units(units, "searched", _SEARCH_MEMORY)
        chosen = np.zeros(self.pool.documents, bool)
        for folder in folders:
            chosen[np.load(folder / CHOSEN)] = True
        figures = [json.loads((folder / FIGURES).read_text()) for folder in folders]
        searched, hits, first, last = (sum(each[key] for each in figures) for key in ("asked", "hits", "first", "last"))
        statistics: dict[str, Any] = {
            "asked": searched,
            "without_vector": queries - searched,
            "hits": hits,
            "texts": int(chosen.sum()),
            "mean_cosine_of_nearest": round(first / max(1, searched), 4),
            "mean_cosine_of_farthest": round(last / max(1, searched), 4),
            "index": "inverted_lists" if lists else "flat",
        }
        if lists:
            statistics["recall"] = self._recall(own, domain, lists, queries)
        return SelectionResult(chosen, statistics, self._shown(folders))

    def _encoded(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Folders with the vectors of the task's texts, and of the domain texts."""
        pool, vectors = self.pool, self.vectors
        (learned,) = pool.run_units(
            [LearnedVectors("learned", vectors, pool.own, pool.domain)], "learned", vectors.memory
        )
        own, domain = (
            tuple(
                pool.run_units(
                    [
                        EncodedFile(f"{n:05d}", vectors, learned, pool.root, path, count)
                        for n, (path, count) in enumerate(files.items())
                    ],
                    f"encoded-{name}",
                    vectors.memory,
                )
            )
            for name, files in (("own", pool.own), ("domain", pool.domain))
        )
        return own, domain

    def _lists(self, domain: tuple[Path, ...], queries: int) -> tuple[Path, ...]:
        """Folders with the inverted lists of the domain; empty when every text is compared."""
        dimensions = max(shape_of(encoded)[1] for encoded in domain)
        count = self.pool.documents
        pays = count >= LISTS_FROM and queries > QUERIES_PER_LIST * list_count(count, dimensions)
        if not (self.index == "inverted_lists" or (self.index is None and pays)):
            return ()
        (centroids,) = self.pool.run_units([Centroids("centres", domain)], "centres", _SEARCH_MEMORY)
        units = [InvertedLists(f"{n:05d}", encoded, centroids) for n, encoded in enumerate(domain)]
        return tuple(self.pool.run_units(units, "listed", _SEARCH_MEMORY))

    def _recall(self, own: tuple[Path, ...], domain: tuple[Path, ...], lists: tuple[Path, ...], queries: int) -> float:
        some = tuple(evenly(queries, QUERIES_CHECKED))
        unit = RecallCheck("recall", own, some, domain, self.neighbours, lists)
        (folder,) = self.pool.run_units([unit], "recall", _SEARCH_MEMORY)
        return round(float(json.loads((folder / FIGURES).read_text())), 4)

    def _shown(self, folders: list[Path]) -> list[dict[str, Any]]:
        pairs = {
            int(k): v[:SHOWN_NEIGHBOURS] for each in folders for k, v in json.loads((each / SHOWN).read_text()).items()
        }
        queries = texts_at(self.pool.own, sorted(pairs))
        numbers = sorted({one["number"] for near in pairs.values() for one in near})
        neighbours = texts_at(self.pool.domain, numbers)
        return [
            {
                "text": queries[number][:EXCERPT],
                "nearest": [{"cosine": one["cosine"], "text": neighbours[one["number"]][:EXCERPT]} for one in near],
            }
            for number, near in sorted(pairs.items())
        ]
