"""Nearest: nearest neighbours of the task's own texts in the domain corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, SerializeAsAny

from pipelines.components import Component
from pipelines.corpora.selections import Pool, Selection, SelectionResult
from pipelines.corpora.vectors import TextVectors
from pipelines.errors import DataError


class Nearest(Selection, name="nearest"):
    """Select the k nearest texts of each of the task's texts, by cosine (kNN-TAPT; the paper has 50, 150, 500).

    Gururangan et al. 2020 (§5.2) embed sentences with VAMPIRE and search a flat faiss index. Here whole texts of the
    corpus are embedded, with any `vectors`. A text without words has no neighbours, and is never one.
    """

    paper = "arXiv:2004.10964"

    neighbours: int = Field(default=50, ge=1, le=2000)
    """Neighbours of each text of the task; a neighbour of several is selected once."""
    vectors: SerializeAsAny[TextVectors] = Field(default_factory=TextVectors.default)
    """Vectors whose cosine is the similarity of two texts."""
    index: Literal["flat", "inverted_lists"] | None = None
    """Compare with every text (`flat`), or only with those in the nearest inverted lists. None: inverted lists where
    they save work, for hundreds of thousands of domain texts and thousands of queries."""

    def select(self, pool: Pool) -> SelectionResult:
        from pipelines.corpora.selections.neighbourhood import Neighbourhood

        if not pool.documents:
            raise DataError("task_text.selection: the domain corpus is empty, so there are no neighbours to find")
        if not sum(pool.own.values()):
            raise DataError("task_text.selection: the task has no text of its own whose neighbours could be found")
        return Neighbourhood(pool, self.vectors, self.neighbours, self.index).select()

    def parts(self) -> tuple[Component, ...]:
        return (self, self.vectors)

    def libraries(self) -> set[str]:
        return {"numpy", "faiss-cpu", *self.vectors.libraries}

    def files(self, root: Path) -> dict[str, Path]:
        return self.vectors.files(root)
