"""Strategies: which parameters train, at which rate, when, and what holds them back.

A stage may name several; each changes the groups that the one before it left:

    groups of the network, by depth ──▶ full ──▶ discriminative ──▶ gradual_unfreezing ──▶ optimizer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pipelines.components import Component

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


class Strategy(Component):
    """One way of holding training to what was learnt before. Each method's default changes nothing."""

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
        """An optimizer of its own over torch's parameter groups (`params`, `lr`, `weight_decay`), for `total` steps; None
        for the house's AdamW.

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
    """Why these cannot work together, or None."""
    return None
