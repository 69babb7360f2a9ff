"""Selections: which texts of the domain corpus a task adapts to beside its own (Gururangan et al. 2020, §5.2)."""

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
    """A picklable piece of work: an instance of a frozen dataclass of some module."""

    @property
    def name(self) -> str:
        """Unique among the units of a call."""

    def __call__(self, folder: Path) -> None:
        """Write everything into `folder`, which is there and empty."""


@dataclass(frozen=True)
class Pool:
    """What there is to select from, and how work is done.

    Files are Parquet with a column `text`, of at most a shard of text each.
    """

    domain: Mapping[Path, int]
    """File → number of its texts, in the order in which texts are numbered."""
    own: Mapping[Path, int]
    """The same of the task's own texts."""
    worked: Callable[[Sequence[SelectionUnit], str, int], list[Path]]
    """The finished folders of some units of work, in their order; the word names where they stand, the number says how
    many bytes of memory each takes."""
    root: Path
    """Paths of params.yaml are relative to it."""

    @property
    def documents(self) -> int:
        """How many texts the domain has."""
        return sum(self.domain.values())


@dataclass(frozen=True)
class SelectionResult:
    """What was selected, and what is to be known of it."""

    chosen: NDArray[np.bool_]
    """[documents]: a byte for each text of the domain, in its order."""
    figures: dict[str, Any] = field(default_factory=dict)
    """Counts and measures, for the summary."""
    shown: list[dict[str, Any]] = field(default_factory=list)
    """A few of the task's texts with those that were selected for them, for eyes."""


class Selection(Component):
    """A way of selecting. Each text is selected once, whatever number of times it is found."""

    @abstractmethod
    def select(self, pool: Pool) -> SelectionResult:
        """The texts of the domain that join the task's own; DataError when that cannot be done."""

    def parts(self) -> tuple[Component, ...]:
        """This and the components inside it: their code shapes the result."""
        return (self,)

    def libraries(self) -> set[str]:
        """Installed distributions that shape the result."""
        return {"numpy"}

    def files(self, root: Path) -> dict[str, Path]:
        """Files besides the corpus that shape the result, by name. RecipeError when they cannot be used."""
        return {}
