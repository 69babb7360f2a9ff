"""Probes: what is written in the hidden states of finished models, layer by layer.

    each model of a stage ──▶ look: what the probe sees in it ──▶ record: estimates by stage and layer, and what changed

A probe trains nothing of the model it looks at. Its own small parts are trained on the labelled table `train` and judged on
`test`, so that its figures say what is easy to read off, not what the model could be taught.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import PositiveInt

from pipelines.components import Component
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.probes.model import ProbedModel

LAYERS = "layers"
"""Key of the statistics [layers, items, K] that are reported layer by layer."""


@dataclass(frozen=True)
class Observation:
    """What a probe saw in one model."""

    statistics: Mapping[str, NDArray[np.float64]]
    """Name → one row an item (sentence, text, document) along the last axis but one, from which scores of any resample of the
    items are computed; under `LAYERS` those of every layer, [layers, items, K]."""
    first_layer: int = 0
    """Number of the first layer of `LAYERS`: 0 is what the first layer reads, the embeddings."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """JSON values that have no interval."""


@dataclass(frozen=True)
class ProbedStage:
    """The models of one stage, seeds ascending."""

    name: str
    seeds: tuple[int, ...]
    seen: tuple[Observation, ...]

    def layer(self, number: int) -> list[NDArray[np.float64]]:
        """The statistics [items, K] of a layer of each model, counted from the first one reported."""
        return [one.statistics[LAYERS][number] for one in self.seen]

    @property
    def layers(self) -> range:
        """The numbers of the layers."""
        first = self.seen[0].first_layer
        return range(first, first + len(self.seen[0].statistics[LAYERS]))


class Probe(Component):
    """A question to the hidden states of a model."""

    reads: ClassVar[frozenset[str] | None] = None
    """Names of the task families whose examples it asks about; None for all, of which it then reads nothing."""
    tables: ClassVar[tuple[str, ...]] = ("train", "test")
    """The tables it reads."""
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ONE_STACK})
    """Abilities that the body of each subject must offer."""
    cannot: ClassVar[Mapping[Ability, str]] = {
        Ability.STATIC: "one vector a word, whatever stands around it, so that there are no hidden states to look at",
    }
    """Abilities of bodies that have nothing for it to look at → what they have instead."""
    metrics: ClassVar[tuple[str, ...]]
    """Names of what it scores, the first of which is the one to look at."""

    def tiny(self) -> Self:
        """The same probe at the smallest size that still has all its parts, for smoke runs."""
        return self

    @property
    def examples_read(self) -> int:
        """Examples of each table that it reads at most: the first of a random order that all probes of a stage share."""
        return 0

    @abstractmethod
    def look(self, model: ProbedModel) -> Observation:
        """What is seen in one model. Deterministic in the model, the tables and the seed of the stage."""

    @abstractmethod
    def score(self, metric: str, statistics: NDArray[np.float64]) -> float:
        """`metric` over the rows of the `statistics` [n, K] of any items."""

    def record(self, stages: Sequence[ProbedStage], seed: int) -> dict[str, Any]:
        """The probe's section of `probes.json`: estimates by stage and layer, and what changed from one stage to the next."""
        from pipelines.judging.probes.records import layer_record

        return layer_record(self, stages, seed)


class ExampleProbe(Probe):
    """A probe that reads labelled examples."""

    examples: PositiveInt = 500
    """Sentences or texts that are read of each table, at most."""

    def tiny(self) -> Self:
        return self.model_copy(update={"examples": min(self.examples, 24)})

    @property
    def examples_read(self) -> int:
        return self.examples
