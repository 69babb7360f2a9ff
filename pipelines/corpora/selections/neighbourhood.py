"""The search for neighbours as units of work: learn, encode, put in lists where that pays, search.

Global are a byte for each text of the domain, and on disk its vector: two bytes a dimension. The questions are asked a
block at a time, so that neither their number nor that of the texts is bounded by memory.
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

QUESTIONS = 1024
"""Questions asked at once."""
LISTS_FROM = 200_000
"""Texts of the domain from which on lists may pay."""
QUESTIONS_A_LIST = 10
"""Questions for each list from which on they do: making the lists compares every text with every list's centre, and a look
into a list is no matrix product."""
QUESTIONS_CHECKED = 64
"""Questions that are also answered exactly, to measure what the lists miss."""
SHOWN_QUESTIONS = 5
SHOWN_NEIGHBOURS = 3
EXCERPT = 300
_SEARCH_MEMORY = 320 * 2**20


@dataclass(frozen=True)
class Neighbourhood:
    """The neighbours of a pool's own texts."""

    pool: Pool
    vectors: TextVectors
    neighbours: int
    index: str | None

    def select(self) -> SelectionResult:
        """The texts that are among the nearest of any of the task's, and how near they are."""
        own, domain = self._encoded()
        questions = sum(self.pool.own.values())
        listed = self._listed(domain, questions)
        shown = tuple(evenly(questions, SHOWN_QUESTIONS))
        units = [
            NeighbourSearch(
                f"{begin:09d}",
                own,
                begin,
                min(begin + QUESTIONS, questions),
                domain,
                self.neighbours,
                shown,
                listed,
            )
            for begin in range(0, questions, QUESTIONS)
        ]
        found = self.pool.worked(units, "searched", _SEARCH_MEMORY)
        chosen = np.zeros(self.pool.documents, bool)
        for folder in found:
            chosen[np.load(folder / CHOSEN)] = True
        figures = [json.loads((folder / FIGURES).read_text()) for folder in found]
        asked, hits, first, last = (sum(each[key] for each in figures) for key in ("asked", "hits", "first", "last"))
        told: dict[str, Any] = {
            "asked": asked,
            "without_vector": questions - asked,
            "hits": hits,
            "texts": int(chosen.sum()),
            "mean_cosine_of_nearest": round(first / max(1, asked), 4),
            "mean_cosine_of_farthest": round(last / max(1, asked), 4),
            "index": "inverted_lists" if listed else "flat",
        }
        if listed:
            told["recall"] = self._recall(own, domain, listed, questions)
        return SelectionResult(chosen, told, self._shown(found))

    def _encoded(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """The folders with the vectors of the task's texts, and of the domain's."""
        pool, vectors = self.pool, self.vectors
        (learned,) = pool.worked([LearnedVectors("learned", vectors, pool.own, pool.domain)], "learned", vectors.memory)
        own, domain = (
            tuple(
                pool.worked(
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

    def _listed(self, domain: tuple[Path, ...], questions: int) -> tuple[Path, ...]:
        """The folders with the domain in lists; none where every text is compared."""
        dimensions = max(shape_of(encoded)[1] for encoded in domain)
        count = self.pool.documents
        pays = count >= LISTS_FROM and questions > QUESTIONS_A_LIST * list_count(count, dimensions)
        if not (self.index == "inverted_lists" or (self.index is None and pays)):
            return ()
        (centres,) = self.pool.worked([Centroids("centres", domain)], "centres", _SEARCH_MEMORY)
        units = [InvertedLists(f"{n:05d}", encoded, centres) for n, encoded in enumerate(domain)]
        return tuple(self.pool.worked(units, "listed", _SEARCH_MEMORY))

    def _recall(
        self, own: tuple[Path, ...], domain: tuple[Path, ...], listed: tuple[Path, ...], questions: int
    ) -> float:
        some = tuple(evenly(questions, QUESTIONS_CHECKED))
        unit = RecallCheck("recall", own, some, domain, self.neighbours, listed)
        (folder,) = self.pool.worked([unit], "recall", _SEARCH_MEMORY)
        return round(float(json.loads((folder / FIGURES).read_text())), 4)

    def _shown(self, found: list[Path]) -> list[dict[str, Any]]:
        pairs = {
            int(k): v[:SHOWN_NEIGHBOURS] for each in found for k, v in json.loads((each / SHOWN).read_text()).items()
        }
        questions = texts_at(self.pool.own, sorted(pairs))
        numbers = sorted({one["number"] for near in pairs.values() for one in near})
        answers = texts_at(self.pool.domain, numbers)
        return [
            {
                "text": questions[number][:EXCERPT],
                "nearest": [{"cosine": one["cosine"], "text": answers[one["number"]][:EXCERPT]} for one in near],
            }
            for number, near in sorted(pairs.items())
        ]
