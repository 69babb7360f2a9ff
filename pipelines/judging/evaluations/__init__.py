"""Evaluations: measurements of finished models, with confidence intervals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pipelines.components import Component, did_you_mean
from pipelines.errors import RecipeError
from pipelines.vocabulary import Ability, Signal

if TYPE_CHECKING:
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
    from pipelines.judging.figures import RecordedFigure
    from pipelines.task_families import TaskFamily


class Evaluation(Component):
    """One section of a report."""

    default_name: ClassVar[str] = "scores"
    """Default evaluation: scores any task family and compares stages."""
    lattice_evaluation: ClassVar[str] = "stage_effects"
    """The family's member that judges all paths of a lattice."""
    judges: ClassVar[Literal["task models", "language models", "models"]] = "task models"
    """Kind of stages that it judges: those that answer a task (finetune, compress), those trained on plain text, or
    both (`models`)."""
    independent_of_models: ClassVar[bool] = False
    """Whether its results depend on the task alone, not on the other models that are judged with it."""
    baseline_sample: ClassVar[str] = ""
    """Name of the sample that it keeps of baselines without a network; empty for one that has none."""
    reads: ClassVar[frozenset[str] | None] = None
    """Names of the task families it is defined for; None for all."""
    nondeterministic_keys: ClassVar[frozenset[str]] = frozenset()
    """Keys of its record, at any depth, whose values depend on clock or machine and differ between runs."""
    needs_signals: ClassVar[frozenset[Signal]] = frozenset()
    """Signals that the heads of the judged stages must provide."""
    incompatible_abilities: ClassVar[Mapping[Ability, str]] = {}
    """Abilities of backbones that it cannot judge → what such backbones have instead."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        """What it records of each model for claims, on tasks of `family`; `measure` keeps the samples
        (`EvaluationContext.keep`). A figure has one name whichever evaluation records it."""
        return ()

    @classmethod
    def options_to_compare(cls, stages: Sequence[str], figure: str | None) -> dict[str, Any]:
        """Options with which it compares `stages`, the best last, by `figure`."""
        return {}

    @property
    def longest_row(self) -> int | None:
        """Tokens of the longest row that a model reads, if known before there is data."""
        return None

    @property
    def most_memory(self) -> int | None:
        """Most tokens of memory that a model can have while it reads, if known before there is data."""
        return None

    def tiny(self) -> Self:
        """The same evaluation at its smallest complete size, for smoke runs."""
        return self

    def chosen_metric(self, metric: str | None, family: TaskFamily) -> str:
        """`metric`, or the first metric of `family` if None. Raises RecipeError for a metric that the family does not
        have."""
        if metric is not None and metric not in family.metrics:
            raise RecipeError(
                f"evaluation {self.name}: {family.name} has no metric {metric!r}.{did_you_mean(metric, family.metrics)}"
            )
        return metric or family.metrics[0]

    @property
    def subjects(self) -> tuple[str, ...]:
        """The stages that this evaluation names; each must be among those that its stage starts from."""
        return ()

    def unfit(self, family: str | None, language: str | None) -> str | None:
        """Why its settings do not suit a task of `family` in `language`; None if they do, or if these are not known."""
        return None

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        """Estimated forward passes of each model, in addition to one pass over the test table."""
        return ()

    @abstractmethod
    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """This section's record: JSON values only, the source of its tables and plots.

        Its optional key `headline` maps names to the few figures worth seeing without opening the report.
        """
