"""Random texts: the control for other selections. If neighbours do not help, as many random texts do as well."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, SerializeAsAny, model_validator

from pipelines.components import Component
from pipelines.corpora.selections import Pool, Selection, SelectionResult
from pipelines.errors import DataError


class RandomTexts(Selection, name="random_texts"):
    """Select texts uniformly at random (RAND-TAPT in Gururangan et al. 2020, §5.2).

    `matching` makes a control of equal size: as many texts as that selection selects.
    """

    paper = "arXiv:2004.10964"

    texts: int | None = Field(default=None, ge=1)
    """Number of texts; alternatively give `matching`."""
    matching: SerializeAsAny[Selection] | None = None
    """A selection that is computed only to count the texts it selects."""
    seed: int = Field(default=0, ge=0)
    """Seed of the random draw."""

    @model_validator(mode="after")
    def _one_size(self) -> Self:
        if (self.texts is None) == (self.matching is None):
            raise ValueError("give either texts (a number) or matching (the selection whose size is used)")
        return self

    def select(self, pool: Pool) -> SelectionResult:
        import numpy as np

        figures = {}
        size = self.texts
        if self.matching is not None:
            other = self.matching.select(pool)
            size = int(other.chosen.sum())
            figures = {"matching": {"name": self.matching.name, "texts": size}}
        assert size is not None
        if size > pool.documents:
            raise DataError(
                f"task_text.selection: random_texts requests {size} texts, but the domain corpus has {pool.documents}; "
                "request fewer"
            )
        draw = np.random.default_rng(self.seed)
        sizes = list(pool.domain.values())
        # first the number of texts per file, then which: the indices of one file at a time are in memory
        shares = draw.multivariate_hypergeometric(sizes, size, method="marginals")
        chosen = np.zeros(pool.documents, bool)
        begin = 0
        for count, share in zip(sizes, shares, strict=True):
            chosen[begin + draw.choice(count, int(share), replace=False)] = True
            begin += count
        return SelectionResult(chosen, figures)

    def parts(self) -> tuple[Component, ...]:
        return (self, *(self.matching.parts() if self.matching else ()))

    def libraries(self) -> set[str]:
        return {"numpy"} | (self.matching.libraries() if self.matching else set())

    def files(self, root: Path) -> dict[str, Path]:
        return self.matching.files(root) if self.matching else {}
