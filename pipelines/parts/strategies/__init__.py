"""Strategies: which parameters train, at which rate, when, and what holds them back.

A stage may name several; each changes the groups that the one before it left:

    groups of the network, by depth ──▶ full ──▶ discriminative ──▶ gradual_unfreezing ──▶ optimizer

No two may decide the same thing, and none may leave another nothing to decide: `conflict` says which cannot meet.
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
class Group:
    """Parameters at one depth of a network that share a rate."""

    depth: int
    """0 for embeddings, 1 … `layers` for the body's layers from the bottom, `layers` + 1 for what lies outside the body."""
    layers: int
    parameters: Sequence[tuple[str, Parameter]]
    """Their names in the network, and themselves."""
    lr: float
    """Peak learning rate."""
    weight_decay: float

    @property
    def is_head(self) -> bool:
        """Whether these lie outside the body: they were not pre-trained."""
        return self.depth > self.layers

    def at(self, **changes: Any) -> Group:
        """This group with other values."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Progress:
    """Where in a stage training stands."""

    step: int
    """Optimizer steps done."""
    total: int
    per_epoch: int
    """Optimizer steps in a pass over the data."""


class Decision(StrEnum):
    """What a strategy can decide, as the end of a sentence."""

    WHICH = "which parameters train"
    WHEN = "when each layer trains"
    RATES = "the rate of each layer"
    HOLD = "what pulls the weights back to their start"
    OPTIMIZER = "the optimizer"


class Strategy(Component):
    """One way of holding training to what was learnt before. Each method's default changes nothing."""

    decides: ClassVar[frozenset[Decision]]
    """At least one: WHEN where `trains` is overridden, OPTIMIZER where `optimizer` is, HOLD where the start is remembered."""
    settles: ClassVar[frozenset[Decision]] = frozenset()
    """Decisions that have nothing left to act on beside this strategy."""

    def extend(self, network: PreTrainedModel) -> None:
        """Add modules to `network` in place, randomly initialised from the global generator.

        Called after the start's weights are in, and again, before weights are loaded, whenever the saved folder is opened:
        a strategy that overrides this is recorded in the folder's configuration.
        """

    def groups(self, groups: Sequence[Group]) -> list[Group]:
        """The groups to train: changed, split, or left out. What is in none of them stays frozen."""
        return list(groups)

    def trains(self, group: Group, progress: Progress) -> bool:
        """Whether `group` trains at this step. A group that does not has no gradient and its moments stand still."""
        return True

    def optimizer(self, groups: list[dict[str, Any]], total: int, options: dict[str, Any]) -> Optimizer | None:
        """An optimizer of its own over torch's parameter groups (`params`, `lr`, `weight_decay`, and `is_head`: whether
        they lie outside the body, as those of companions do), for `total` steps; None for the house's AdamW.

        Called before the first step with the weights the stage starts from, also when a run is resumed (the weights of
        the checkpoint come later), so that the start may be remembered. `options` holds betas and eps.
        """
        return None

    def begin(self, network: PreTrainedModel) -> Any:
        """What `penalty` needs to remember of the weights the stage starts from. Called when `optimizer` is."""
        return None

    def penalty(self, network: PreTrainedModel, remembered: Any) -> dict[str, Tensor]:
        """Named scalar terms that are added to the loss, already weighted."""
        return {}


def conflict(strategies: Sequence[Strategy]) -> str | None:
    """Why these cannot work together and what to do, or None where they can. Their order does not matter."""
    for first, second in combinations(strategies, 2):
        for decision in sorted(first.decides & second.decides):
            return f"{first.name} and {second.name} both decide {decision}; keep one of them"
    for first, second in permutations(strategies, 2):
        for decision in sorted(first.settles & second.decides):
            return f"{second.name} decides {decision}, and {first.name} leaves it nothing to act on; drop one of them"
    return None


def refuse_without_head(strategy: Strategy, groups: Sequence[Group]) -> None:
    """Raise a RecipeError when no group lies outside the body, where `strategy` would begin."""
    if not any(group.is_head and group.parameters for group in groups):
        raise RecipeError(
            f"strategy {strategy.name}: it trains what is new on top of the body first, and this head adds no weights "
            "to its body; use another strategy, for example full"
        )
