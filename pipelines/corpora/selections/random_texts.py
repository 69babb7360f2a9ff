"""Random texts: the control. If neighbours are worth nothing, as many texts drawn blindly do as well."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import Field, SerializeAsAny, model_validator

from pipelines.components import Component
from pipelines.corpora.selections import Pool, Selection, SelectionResult
from pipelines.errors import DataError


class RandomTexts(Selection, name="random_texts"):
    """Texts drawn without looking at them, all alike (RAND-TAPT in Gururangan et al. 2020, §5.2).

    `matching` makes a control of equal size: as many texts as that selection selects, by number of texts.
    """

    paper = "arXiv:2004.10964"

    texts: int | None = Field(default=None, ge=1)
    """How many; or say `matching`."""
    matching: SerializeAsAny[Selection] | None = None
    """A selection that is made only to count what it selects."""
    seed: int = Field(default=0, ge=0)
    """Another draw."""

    @model_validator(mode="after")
    def _says_how_many(self) -> Self:
        if (self.texts is None) == (self.matching is None):
            raise ValueError("say either texts (a number) or matching (the selection whose size it takes)")
        return self

    def select(self, pool: Pool) -> SelectionResult:
        import numpy as np

        figures = {}
        wanted = self.texts
        if self.matching is not None:
            other = self.matching.select(pool)
            wanted = int(other.chosen.sum())
            figures = {"matching": {"name": self.matching.name, "texts": wanted}}
        assert wanted is not None
        if wanted > pool.documents:
            raise DataError(
                f"task_text.selection: random_texts asks for {wanted} texts, but the domain corpus has {pool.documents}; "
                "ask for fewer"
            )
        draw = np.random.default_rng(self.seed)
        sizes = list(pool.domain.values())
        # how many of each file, then which: no more than a file's numbers are in memory
        shares = draw.multivariate_hypergeometric(sizes, wanted, method="marginals")
        chosen = np.zeros(pool.documents, bool)
        begin = 0
        for size, share in zip(sizes, shares, strict=True):
            chosen[begin + draw.choice(size, int(share), replace=False)] = True
            begin += size
        return SelectionResult(chosen, figures)

    def parts(self) -> tuple[Component, ...]:
        return (self, *(self.matching.parts() if self.matching else ()))

    def libraries(self) -> set[str]:
        return {"numpy"} | (self.matching.libraries() if self.matching else set())

    def files(self, root: Path) -> dict[str, Path]:
        return self.matching.files(root) if self.matching else {}
