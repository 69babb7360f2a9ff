"""Selections: domain texts that join the task's own texts in task adaptation (Gururangan et al. 2020, §5.2)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pipelines.components import Component

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SelectionUnit(Protocol):
    """Picklable unit of work: an instance of a frozen dataclass defined at module level."""

    @property
    def name(self) -> str:
        """Name of the unit's folder, unique among the units of a call."""

    def __call__(self, folder: Path) -> None:
        """Write all output into `folder`, which exists and is empty."""


@dataclass(frozen=True)
class Pool:
    """Texts to select from, and how units of work are computed.

    Files are Parquet with a column `text`, each at most one shard large.
    """

    domain: Mapping[Path, int]
    """File of the domain corpus → number of its texts, in the order in which texts are indexed."""
    own: Mapping[Path, int]
    """File of the task's own texts → number of its texts."""
    run_units: Callable[[Sequence[SelectionUnit], str, int], list[Path]]
    """Computes units of work and returns their finished folders, in order; called with the units, a name for their
    parent folder, and the bytes of memory that each unit takes."""
    root: Path
    """Folder that paths of params.yaml are relative to."""

    @property
    def documents(self) -> int:
        """Number of texts in the domain corpus."""
        return sum(self.domain.values())


@dataclass(frozen=True)
class SelectionResult:
    """Selected texts, with statistics and examples."""

    chosen: NDArray[np.bool_]
    """bool [documents]: whether each text of the domain corpus is selected."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Counts and statistics, for the summary."""
    shown: list[dict[str, Any]] = field(default_factory=list)
    """A few of the task's texts with the texts selected for them, for inspection."""


class Selection(Component):
    """Base class of selections. Each text is selected at most once, even if it matches several times."""

    @abstractmethod
    def select(self, pool: Pool) -> SelectionResult:
        """Select the texts of the domain corpus that join the task's own. Raises DataError when that is impossible."""

    def parts(self) -> tuple[Component, ...]:
        """This component and those inside it, whose code affects the result."""
        return (self,)

    def libraries(self) -> set[str]:
        """Installed distributions whose versions affect the result."""
        return {"numpy"}

    def files(self, root: Path) -> dict[str, Path]:
        """Name → file, other than the corpus, that affects the result. Raises RecipeError when one cannot be used."""
        return {}
