"""Objectives: what a stage minimises.

batch ──▶ rewrite (may ask companions) ──▶ network ──▶ signals ──▶ loss ──▶ named terms
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

from pipelines.components import Component
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel

Batch: TypeAlias = "Mapping[Field, Any]"
Signals: TypeAlias = "Mapping[Signal, Any]"


@dataclass
class Companion:
    """A network beside the trained one."""

    network: PreTrainedModel
    ask: Callable[[Batch, frozenset[Signal]], Signals]
    """What the companion says of a batch; without gradient when it is frozen."""
    trains: bool = False
    """Whether its weights train too. It is then saved in the folder `companions/<name>` beside the model, where the next
    stage with the same objective finds it; the model's own weights never hold it."""


class Companions(Protocol):
    """What an objective may ask for when it makes its companions."""

    network: PreTrainedModel
    """The network that will be trained."""

    def teacher(self) -> Companion:
        """The stage's teacher under the stage's head, frozen."""

    def trained(self, name: str, head: str, config: PretrainedConfig) -> Companion:
        """A network of `config` under the head called `head` that trains beside the stage's own.

        Its weights are those that the stage's start saved under `name`, else random.
        """


@dataclass
class TrainingStep:
    """One batch and what every network says of it. A companion is asked the same question at most once."""

    batch: Batch
    signals: Signals
    """Of the trained network; empty while objectives rewrite the batch."""
    network: PreTrainedModel
    ask: Callable[[str, Batch, frozenset[Signal]], Signals]
    """`ask(companion, batch, wanted)`: what the companion says of a batch."""
    wanted: frozenset[Signal] = frozenset()
    """The signals that this stage's objectives need of the trained network."""
    spent: frozenset[Signal] = frozenset()
    """Those of them that one objective reads and nothing else: it may overwrite them."""
    gathered: Callable[[Tensor], Tensor] = field(default=lambda rows: rows)
    """`gathered(rows)`: these rows of every rank, in the order of ranks. All ranks must ask, and each passes the gradient on
    to its own."""
    notes: dict[str, Any] = field(default_factory=dict)
    """What an objective's `rewrite` leaves for its `loss`, under the objective's name."""
    _answers: dict[tuple[str, frozenset[Signal]], Signals] = field(default_factory=dict)

    def companion(self, name: str, wanted: frozenset[Signal] | None = None) -> Signals:
        """The signals `wanted` (None: those the trained network is asked for) of companion `name` on this batch, as it was
        when first asked."""
        question = (name, self.wanted if wanted is None else wanted)
        if question not in self._answers:
            self._answers[question] = self.ask(name, self.batch, question[1])
        return self._answers[question]


class Objective(Component):
    """A term, or several, of the loss. A pure function of the training step."""

    needs_fields: ClassVar[frozenset[Field]] = frozenset()
    needs_signals: ClassVar[frozenset[Signal]] = frozenset()
    """Asked of the network."""
    needs_teacher: ClassVar[bool] = False
    companion_heads: ClassVar[frozenset[str]] = frozenset()
    """Heads of the companions it trains, by name: what they need, a batch must carry too."""
    compares_rows: ClassVar[bool] = False
    """Whether a row's part in the loss hangs on the other rows of its batch. Its terms are then those of the whole batch on
    every rank, by way of `step.gathered`."""

    weight: float = 1.0
    """Multiple of this objective's terms in the loss."""

    def companions(self, make: Companions) -> dict[str, Companion]:
        """Networks beside the trained one, by name. Called once, before training."""
        return {}

    def rewrite(self, step: TrainingStep) -> Batch:
        """The batch that the trained network will read. A pure function of the step and torch's global generator."""
        return step.batch

    @abstractmethod
    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        """Named scalar terms, before `weight` is applied."""

    @abstractmethod
    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        """How much of `batch` each term of `loss` is the mean over, by the terms' names: what a part of a batch weighs."""
