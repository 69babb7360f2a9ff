"""Probes: what the hidden states of finished models encode, layer by layer.

    each model of a stage ──▶ observe: statistics of hidden states ──▶ record: estimates by stage and layer, changes

A probe does not train the model it reads. Its own small classifiers are trained on the labelled table `train` and
scored on `test`, so that their scores show what is easily read off the hidden states, not what the model could learn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field

from pipelines.components import Component
from pipelines.judging.figures import RecordedFigure, best_layer_score, expected_layer
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.probes.model import ProbedModel

LAYERS = "layers"
"""Key of the statistics [layers, items, K] that are reported layer by layer."""


def statistic_sample(probe: str, statistic: str) -> str:
    """Name of the sample that a probe keeps of a statistic without layers."""
    return f"{probe}:{statistic}"


@dataclass(frozen=True)
class Observation:
    """Result of a probe on one model."""

    statistics: Mapping[str, NDArray[np.float64]]
    """Name → statistics with one row per item (sentence, text, document) along the last axis but one, from which scores
    of any resample of the items are computed; under `LAYERS` those of every layer, [layers, items, K]."""
    first_layer: int = 0
    """Number of the first layer of `LAYERS`; 0 is the input of the first layer, the embeddings."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """JSON values without intervals."""


@dataclass(frozen=True)
class ProbedStage:
    """Observations of the models of one stage, seeds ascending."""

    name: str
    seeds: tuple[int, ...]
    observations: tuple[Observation, ...]

    def layer(self, number: int) -> list[NDArray[np.float64]]:
        """Statistics [items, K] of a layer of each model; `number` counts from the first reported layer."""
        return [one.statistics[LAYERS][number] for one in self.observations]

    @property
    def layers(self) -> range:
        """Numbers of the reported layers."""
        first = self.observations[0].first_layer
        return range(first, first + len(self.observations[0].statistics[LAYERS]))


class Probe(Component):
    """A measurement on the hidden states of a model."""

    reads: ClassVar[frozenset[str] | None] = None
    """Names of the task families whose examples it reads; None for a probe that reads no labelled examples."""
    tables: ClassVar[tuple[str, ...]] = ("train", "test")
    """The tables it reads."""
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.ONE_STACK})
    """Abilities that the backbone of each subject must offer."""
    incompatible_abilities: ClassVar[Mapping[Ability, str]] = {
        Ability.STATIC: "one vector per word whatever its context, so it has no hidden states to probe",
    }
    """Abilities of backbones that the probe cannot read → what such backbones have instead."""
    metrics: ClassVar[tuple[str, ...]]
    """Names of its metrics, the primary one first."""

    def tiny(self) -> Self:
        """The same probe at its smallest complete size, for smoke runs."""
        return self

    @property
    def examples_read(self) -> int:
        """Maximum number of examples read per table: the first of a random order that all probes of a stage share."""
        return 0

    def figures(self) -> Sequence[RecordedFigure]:
        """What it records of each model for claims: each metric at its best layer, and the expected layer of the first,
        counted from the lowest that it reports."""
        of_metrics = [
            RecordedFigure(f"{self.name}/{one}", self.name, best_layer_score(self.scorer(one)), bounds=(-1.0, 1.0))
            for one in self.metrics
        ]
        layer = RecordedFigure(
            f"{self.name}/layer", self.name, expected_layer(self.scorer(self.metrics[0])), True, "layers"
        )
        return [*of_metrics, layer]

    def scorer(self, metric: str) -> Score:
        """A function: statistics [n, K] of any items → value of `metric`."""
        return lambda statistics: self.score(metric, statistics)

    @abstractmethod
    def observe(self, model: ProbedModel) -> Observation:
        """Statistics of one model. Deterministic in the model, the tables and the seed of the stage."""

    @abstractmethod
    def score(self, metric: str, statistics: NDArray[np.float64]) -> float:
        """`metric` over the rows of the `statistics` [n, K] of any items."""

    def record(self, stages: Sequence[ProbedStage], seed: int) -> dict[str, Any]:
        """The probe's section of `probes.json`: estimates by stage and layer, and changes from one stage to
        the next."""
        from pipelines.judging.probes.records import layer_record

        return layer_record(self, stages, seed)


class ExampleProbe(Probe):
    """A probe that reads labelled examples."""

    examples: int = Field(500, ge=1, le=10_000_000)
    """Maximum number of sentences or texts read per table."""

    def tiny(self) -> Self:
        return self.model_copy(update={"examples": min(self.examples, 24)})

    @property
    def examples_read(self) -> int:
        return self.examples
