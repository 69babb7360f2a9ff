"""Objectives: the terms of the loss that a stage minimises.

batch ──▶ rewrite (may run companions) ──▶ network ──▶ signals ──▶ loss ──▶ named terms
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeAlias

from pydantic import Field as Option

from pipelines.components import Component
from pipelines.components.declared import DeclaredBatch, whole, wrap_own
from pipelines.networks.shape import NetworkShape
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor, nn
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Row
    from pipelines.task_families.encoding import EncodedExamples

Batch: TypeAlias = "Mapping[Field, Any]"
Signals: TypeAlias = "Mapping[Signal, Any]"


class ExampleEncoding(Protocol):
    """How a companion encodes labelled examples, in tokens of its own."""

    def encode(self, rows: Sequence[Row]) -> EncodedExamples:
        """Encode `rows` without answers."""

    def encode_items(self, items: EncodedExamples) -> EncodedExamples:
        """Encode the examples of `items`, item by item. Raises RecipeError where they are other items."""


@dataclass
class Companion:
    """A network that an objective uses alongside the trained one: a teacher, or a generator that trains along."""

    network: PreTrainedModel
    forward: Callable[[Batch, frozenset[Signal]], Signals]
    """`forward(batch, requested)`: the requested signals of the companion; without gradient when it is frozen."""
    trains: bool = False
    """Whether its weights train too. It is then saved in the subfolder `companions/<name>` of the model's folder, from
    which the next stage with the same objective loads it; the model's own weights never include it."""
    own_tokens: ExampleEncoding | None = None
    """How it encodes the labelled examples that `forward` is to read in place of the student's rows; None: it reads
    those."""
    shared_ids: Tensor | None = None
    """int64 [V]: its id of each token of the trained network's vocabulary, −1 where it has none; None: the same ids."""


class Companions(Protocol):
    """Factory of companions, passed to `Objective.companions`."""

    network: PreTrainedModel
    """The network to be trained."""

    def teacher(self) -> Companion:
        """The teacher of the stage with the head of the stage, frozen."""

    def trained(self, name: str, head: str, config: PretrainedConfig) -> Companion:
        """A network of `config` with the head named `head` that trains along with the stage's own network.

        Its weights are those saved as companion `name` with the stage's initial model, otherwise random.
        """


@dataclass
class TrainingStep:
    """One batch and the signals of every network for it. Signals of a companion are computed at most once."""

    batch: Batch
    signals: Signals
    """Signals of the trained network; empty while objectives rewrite the batch."""
    network: PreTrainedModel
    forward_companion: Callable[[str, Batch, frozenset[Signal]], Signals]
    """`forward_companion(name, batch, requested)`: the requested signals of companion `name` for a batch."""
    requested: frozenset[Signal] = frozenset()
    """The signals that this stage's objectives need of the trained network."""
    overwritable: frozenset[Signal] = frozenset()
    """The signals among `requested` that a single objective reads and nothing else: it may overwrite them in place."""
    modules: Mapping[str, nn.Module] = field(default_factory=dict)
    """The modules that objectives own, by the objective's name."""
    companions: Mapping[str, Companion] = field(default_factory=dict)
    """The companions of this stage's objectives, for an objective that compares weights. Empty in validation."""
    progress: float = 0.0
    """Share of the stage's optimizer steps that are done, from 0 to less than 1, for a loss that changes in the course
    of the stage."""
    all_gather: Callable[[Tensor], Tensor] = field(default=lambda rows: rows)
    """`all_gather(rows)`: the rows of every rank, concatenated in the order of ranks. A collective: every rank must
    call it. The gradient of a rank flows to its own rows."""
    notes: dict[str, Any] = field(default_factory=dict)
    """Values that an objective's `rewrite` passes to its `loss`, by the objective's name."""
    _companion_signals: dict[tuple[str, frozenset[Signal]], Signals] = field(default_factory=dict)

    def companion_signals(self, name: str, requested: frozenset[Signal] | None = None) -> Signals:
        """The signals `requested` (None: those requested of the trained network) of companion `name` for this batch.

        Computed in the first call, from the batch as it is then, and cached.
        """
        key = (name, self.requested if requested is None else requested)
        if key not in self._companion_signals:
            # a companion has declarations of its own
            self._companion_signals[key] = self.forward_companion(name, whole(self.batch), key[1])
        return self._companion_signals[key]


class Objective(Component):
    """One or several terms of the loss. A pure function of the training step."""

    needs_fields: ClassVar[frozenset[Field]] = frozenset()
    """Fields of the batch that `rewrite`, `loss` or `counts` reads."""
    may_read: ClassVar[frozenset[Field]] = frozenset()
    """Fields that they read where a batch has them, or that `rewrite` adds for `loss`. Any other is refused."""
    needs_signals: ClassVar[frozenset[Signal]] = frozenset()
    """Signals of the trained network that `loss` reads, with its default options."""
    needs_teacher: ClassVar[bool] = False
    """Whether the stage must name a teacher."""
    companion_heads: ClassVar[frozenset[str]] = frozenset()
    """Names of the heads of the companions it trains: a batch must also have the fields that they need."""
    compares_rows: ClassVar[bool] = False
    """Whether a row's contribution to the loss depends on the other rows of its batch. Its terms are then those of the
    whole batch on every rank, computed with `step.all_gather`."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        wrap_own(cls, "rewrite", _step_of_declared)
        wrap_own(cls, "loss", _step_of_declared)
        wrap_own(cls, "counts", _counts_of_declared)

    weight: float = 1.0
    """Factor of this objective's terms in the loss."""
    weight_end: float | None = Option(None, exclude_if=lambda value: value is None)
    """Factor at the end of the stage, reached linearly from `weight`; None: it stays."""

    @property
    def required_signals(self) -> frozenset[Signal]:
        """Signals of the trained network that `loss` reads with these options."""
        return self.needs_signals

    def factor(self, progress: float) -> float:
        """Factor of the terms when a share `progress` of the stage's steps is done."""
        return self.weight if self.weight_end is None else self.weight + progress * (self.weight_end - self.weight)

    def unfit(self, student: NetworkShape, teacher: NetworkShape) -> str | None:
        """Why a network of the shape `student` cannot learn from its `teacher` by this objective; None if it can.

        Called when a recipe is loaded, with what it states, and again before training, when both networks are known.
        """
        return None

    def tiny(self) -> Self:
        """The same objective for networks of a smoke run, of one or more layers."""
        return self

    def companions(self, make: Companions) -> dict[str, Companion]:
        """Networks that this objective uses alongside the trained one, by name. Called once, before training."""
        return {}

    def build(self, student: PretrainedConfig, teacher: PretrainedConfig | None) -> nn.Module | None:
        """A module of this objective's own, randomly initialised from the global generator; None if it needs none.

        It trains with the network that `student` configures, is available as `step.modules[self.name]`, and is saved
        in the subfolder `objectives` of the model's folder, from which the next stage with the same objective
        continues it; the model's own weights never include it. `teacher` configures the frozen companion, if any.
        """
        return None

    def rewrite(self, step: TrainingStep) -> Batch:
        """The batch for the trained network. A pure function of the step and torch's global generator."""
        return step.batch

    @abstractmethod
    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        """Named scalar terms, before `factor` is applied."""

    @abstractmethod
    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        """Number of elements of `batch` that each term of `loss` averages over, by name: the weight of a micro-batch's
        mean."""


def _step_of_declared(method: Callable[[Any, TrainingStep], Any]) -> Callable[[Any, TrainingStep], Any]:
    """`rewrite` or `loss` with a batch that refuses fields which the objective does not declare."""

    def read(self: Objective, step: TrainingStep) -> Any:
        batch = step.batch
        step.batch = view = _declared(self, batch)
        try:
            result = method(self, step)
        finally:
            step.batch = batch
        return batch if result is view else result

    return read


def _counts_of_declared(counts: Callable[..., dict[str, int]]) -> Callable[..., dict[str, int]]:
    """`counts` with a batch that refuses fields which the objective does not declare."""

    def read(self: Objective, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return counts(self, _declared(self, batch), network)

    return read


def _declared(objective: Objective, batch: Batch) -> Batch:
    declared = objective.needs_fields | objective.may_read
    return DeclaredBatch(batch, objective, declared, "`needs_fields` or `may_read`")
