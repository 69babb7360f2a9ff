"""Evaluations: what is measured of finished models, and how certain it is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pipelines.components import Component, did_you_mean
from pipelines.errors import RecipeError
from pipelines.vocabulary import Signal

if TYPE_CHECKING:
    from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
    from pipelines.judging.evaluations.stage import EvaluationContext
    from pipelines.task_families import TaskFamily


class Evaluation(Component):
    """One section of a report."""

    default_name: ClassVar[str] = "scores"
    """Judges any task family, and compares stages."""
    of_paths: ClassVar[str] = "stage_effects"
    """The family's member that judges all paths of a lattice."""
    judges: ClassVar[Literal["task models", "language models"]] = "task models"
    """What it can be asked about: stages that answer a task (finetune, compress), or stages trained on plain text."""
    of_task: ClassVar[bool] = False
    """Says something of the task rather than of the models beside it: the same however many those are."""
    reads: ClassVar[frozenset[str] | None] = None
    """Names of the task families it is defined for; None for all."""
    measured: ClassVar[frozenset[str]] = frozenset()
    """Keys of its record, at any depth, whose values a clock or the machine decides: never twice the same."""
    needs_signals: ClassVar[frozenset[Signal]] = frozenset()
    """What the heads of the stages it judges must say."""

    @property
    def longest_row(self) -> int | None:
        """Tokens of the longest row it shows a model, where that is known before there is data."""
        return None

    def tiny(self) -> Self:
        """The same evaluation at the smallest size that still has all its parts, for smoke runs."""
        return self

    def chosen_metric(self, wanted: str | None, family: TaskFamily) -> str:
        """The metric of `family` that is `wanted`, its first where None. Raises RecipeError for one that it has not got."""
        if wanted is not None and wanted not in family.metrics:
            raise RecipeError(
                f"evaluation {self.name}: {family.name} has no metric {wanted!r}.{did_you_mean(wanted, family.metrics)}"
            )
        return wanted or family.metrics[0]

    @property
    def subjects(self) -> tuple[str, ...]:
        """The stages this evaluation names: each must be among those that its stage starts from."""
        return ()

    def unfit(self, family: str | None, language: str | None) -> str | None:
        """Why what its keys ask for says nothing of a task of `family` in `language`; None when it does, or is not known."""
        return None

    def readings(self, asked: EvaluationSize) -> Sequence[ForwardPasses]:
        """What each model is shown by it beside the test table's texts themselves, about."""
        return ()

    @abstractmethod
    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        """This section's record: JSON values only, from which tables and plots are made.

        Its key `headline`, where present, maps names to the few numbers worth seeing without opening the report.
        """
