"""Objectives: what a stage minimises."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from pipelines.components import Component
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

Signals: TypeAlias = "Mapping[Signal, Tensor | tuple[Tensor, ...]]"
LoadCompanion: TypeAlias = "Callable[[str], PreTrainedModel]"


@dataclass
class TrainingStep:
    """One batch and what every network says of it. Companions are asked at most once, and only for wanted signals."""

    batch: Mapping[Field, Tensor]
    signals: Signals
    network: PreTrainedModel
    ask: Callable[[str], Signals]
    """`ask(companion)`: the signals of a frozen companion on the same batch, without gradient."""
    _answers: dict[str, Signals] = field(default_factory=dict)

    def companion(self, name: str) -> Signals:
        """The signals of companion `name` on this batch."""
        if name not in self._answers:
            self._answers[name] = self.ask(name)
        return self._answers[name]


class Objective(Component):
    """A term, or several, of the loss. A pure function of the training step."""

    needs_fields: ClassVar[frozenset[Field]] = frozenset()
    needs_signals: ClassVar[frozenset[Signal]] = frozenset()
    """Asked of the network, and of the companions."""
    needs_teacher: ClassVar[bool] = False

    weight: float = 1.0
    """Multiple of this objective's terms in the loss."""

    def companions(self, load: LoadCompanion) -> dict[str, PreTrainedModel]:
        """Networks beside the trained one, by name; `load("teacher")` gives the stage's teacher, frozen."""
        return {}

    @abstractmethod
    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        """Named scalar terms, before `weight` is applied."""
