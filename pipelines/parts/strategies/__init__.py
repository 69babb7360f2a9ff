"""Fine-tuning strategies: which parameters train, at which learning rate, when, and how they are regularised to their
start.

A stage may name several; each transforms the parameter groups returned by the one before it:

    groups of the network, by depth ──▶ full ──▶ discriminative ──▶ gradual_unfreezing ──▶ optimizer

No two may decide the same thing, and none may make another one's decision void: `conflict` finds such combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.components import Component
from pipelines.errors import RecipeError

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters at one depth of a network that share a learning rate."""

    depth: int
    """0 for embeddings, 1 … `layers` for the backbone's layers from the bottom, `layers` + 1 for the head."""
    layers: int
    """Number of layers of the backbone."""
    parameters: Sequence[tuple[str, Parameter]]
    """(name in the network, parameter) of each."""
    lr: float
    """Peak learning rate."""
    weight_decay: float

    @property
    def is_head(self) -> bool:
        """Whether these are outside the backbone, hence not pre-trained."""
        return self.depth > self.layers

    def replace(self, **changes: Any) -> ParameterGroup:
        """A copy of this group with other values."""
        return replace(self, **changes)


@dataclass(frozen=True)
class TrainingProgress:
    """How far the training of a stage has come."""

    step: int
    """Number of optimizer steps done."""
    total: int
    """Number of optimizer steps of the stage."""
    per_epoch: int
    """Number of optimizer steps in one epoch."""


class Decision(StrEnum):
    """What a strategy can decide; the values complete a sentence of an error message."""

    WHICH = "which parameters train"
    WHEN = "when each layer trains"
    RATES = "the rate of each layer"
    HOLD = "what pulls the weights back to their start"
    OPTIMIZER = "the optimizer"
    START = "which of its start's weights the stage begins with"


class Strategy(Component):
    """One way to fine-tune without losing what was learnt in pre-training. The default of each method changes
    nothing."""

    decides: ClassVar[frozenset[Decision]]
    """At least one: WHEN if `trains` is overridden, OPTIMIZER if `optimizer` is, HOLD if initial weights are kept,
    START if `extend` makes some of them random."""
    precludes: ClassVar[frozenset[Decision]] = frozenset()
    """Decisions that would have no effect in combination with this strategy."""

    @property
    def extends_lines(self) -> bool:
        """Whether this strategy adds modules to the network of each line."""
        return type(self).extend_line is not Strategy.extend_line

    @property
    def extends(self) -> bool:
        """Whether this strategy adds modules."""
        return self.extends_lines or type(self).extend is not Strategy.extend

    def add_modules(self, network: PreTrainedModel) -> None:
        """Let this strategy extend `network`, and the network of each of its lines, in order."""
        from pipelines.networks.several_heads import SeveralHeads

        self.extend(network)
        lines = [network.head(name) for name in network.head_names] if isinstance(network, SeveralHeads) else [network]
        for line in lines if self.extends_lines else ():
            self.extend_line(line)

    def extend(self, network: PreTrainedModel) -> None:
        """Add modules to `network` in place, randomly initialised from the global generator. They serve all lines.

        Called after the initial weights of the stage are loaded, and again whenever the saved folder is opened, before
        its weights are loaded: a strategy that overrides this or `extend_line` is recorded in the folder's
        configuration.
        """

    def extend_line(self, network: PreTrainedModel) -> None:
        """Add modules to the network of one line, as `extend` does to the whole; the only one of a stage without lines.

        What is added is a `ModulesOfLine` (`pipelines.networks.line_modules`) beside the head, never part of the
        backbone, which the lines share: it is saved with the head, continues with it, and is new where the head is.
        """

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        """The groups to train: changed, split, or left out. A parameter in none of them stays frozen."""
        return list(groups)

    def trains(self, group: ParameterGroup, progress: TrainingProgress) -> bool:
        """Whether `group` trains at this step. Otherwise it has no gradient, and its optimizer moments do not
        change."""
        return True

    def optimizer(self, groups: list[dict[str, Any]], total: int, options: dict[str, Any]) -> Optimizer | None:
        """An optimizer over torch's parameter groups (`params`, `lr`, `weight_decay`, and `is_head`: whether they are
        outside the backbone, as those of companions are), for `total` steps; None for the default AdamW.

        Called before the first step with the initial weights of the stage, also when a run is resumed (the weights of
        the checkpoint are loaded later), so that the optimizer can keep a copy of them. `options` holds betas and eps.
        """
        return None

    def begin(self, network: PreTrainedModel) -> Any:
        """State that `penalty` needs of the initial weights of the stage. Called at the same time as `optimizer`."""
        return None

    def penalty(self, network: PreTrainedModel, initial: Any) -> dict[str, Tensor]:
        """Named scalar terms to add to the loss, already weighted. `initial` is the result of `begin`."""
        return {}


def conflict(strategies: Sequence[Strategy]) -> str | None:
    """Why these strategies cannot be combined and what to do, or None if they can. Their order does not matter."""
    for first, second in combinations(strategies, 2):
        for decision in sorted(first.decides & second.decides):
            return f"{first.name} and {second.name} both decide {decision}; keep one of them"
    for first, second in permutations(strategies, 2):
        for decision in sorted(first.precludes & second.decides):
            return (
                f"{second.name} decides {decision}, which has no effect in combination with {first.name}; "
                "drop one of them"
            )
    return None


def require_head(strategy: Strategy, groups: Sequence[ParameterGroup]) -> None:
    """Raise RecipeError when the network has no parameters outside the backbone, with which `strategy` would begin."""
    if not any(group.is_head and group.parameters for group in groups):
        raise RecipeError(
            f"strategy {strategy.name}: it trains the head first, and this head adds no weights to the backbone; use "
            "another strategy, for example full"
        )
