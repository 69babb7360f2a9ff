"""Estimates: backbones whose weights follow from counts of a text in one pass, instead of being learned by gradient.

    token stream ──▶ count, in units of work ──▶ weights of the backbone ──▶ a model folder like any other

An estimate by counting is a function of the text alone: no seed, no order of batches and no number of processes affects
it. One that is trained in a random order, or leaves weights of the backbone random, says so (`draws`): those depend on
the seed of the stage as well.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from pipelines.components import Component
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel


@dataclass(frozen=True)
class TokenFile:
    """A tokenised text: documents as ids, one file of any size, and an end of document after every document."""

    path: Path
    kind: str
    """dtype of the ids."""
    counts: tuple[int, ...]
    """Number of occurrences of each id of the vocabulary."""
    end: int
    """Id of the end of a document."""
    special: tuple[int, ...] = ()
    """Ids of the tokenizer's special tokens, the end among them; no words."""
    texts: tuple[str, ...] = field(default=(), repr=False)
    """The string of each id, as the tokenizer writes it."""

    @property
    def tokens(self) -> NDArray[np.unsignedinteger]:
        """[N] the ids, memory-mapped."""
        import numpy as np

        return np.asarray(np.memmap(self.path, dtype=self.kind, mode="r"))

    @property
    def vocabulary_size(self) -> int:
        """Number of ids."""
        return len(self.counts)


class CountingUnit(Protocol):
    """A picklable unit of work whose result depends on its own fields only."""

    @property
    def name(self) -> str:
        """Name of the unit's folder; unique among the units of a call."""

    def __call__(self, folder: Path) -> None:
        """Write the result into `folder`, which exists, is empty, and is kept only if this returns."""


@dataclass(frozen=True)
class Workspace:
    """Where an estimate keeps intermediate results, so that a killed job continues with what is missing."""

    folder: Path
    run: Callable[[Sequence[CountingUnit], Path], Sequence[Path]]
    """(units, home) → folders of the units in `home`, computed in several processes unless they exist."""
    seed: int = 0
    """Seed of the stage, for an estimate that `draws`."""


class Estimation(Component):
    """How the weights of a backbone follow from counts of a text."""

    needs_abilities: ClassVar[frozenset[Ability]]
    """Abilities that tell the backbones whose weights it can estimate."""
    draws: ClassVar[bool] = False
    """Whether the weights depend on the seed: estimated in a random order or from random weights, or left random."""
    reads_pairs: ClassVar[bool] = False
    """Whether a document is to be two texts, such as a sentence and its translation."""

    @abstractmethod
    def weights(self, text: TokenFile, config: PretrainedConfig, workspace: Workspace) -> dict[str, NDArray[Any]]:
        """Weights of a backbone of `config` by name, estimated from `text`; sizes that depend on the text are written
        into `config`.

        Raises DataError for a text from which nothing can be estimated.
        """

    def set_weights(self, network: PreTrainedModel, weights: dict[str, NDArray[Any]]) -> None:
        """Give a network, whose weights are random, the estimated `weights`: all those of its backbone by default."""
        import torch

        estimated = {name: torch.from_numpy(values) for name, values in weights.items()}
        network.base_model.load_state_dict(estimated, strict=True, assign=True)

    def check_files(self) -> None:
        """Raise DataError if one of `reads_files`, all of which exist, is not what this estimate reads."""

    def tiny(self) -> Self:
        """The same estimate at the smallest size that still has all its parts, for smoke runs."""
        return self
