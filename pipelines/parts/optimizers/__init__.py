"""Optimizers: how a stage's gradients become steps.

A recipe that names none has AdamW: `optimizer: {lr: 1.0e-3}`. Every optimizer has a peak learning rate, weight decay,
clipping and a numerical precision; the rest are its own keys. The parameter groups come from the strategies, the course
of the rate from the schedule.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from pipelines.components import Component
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    import torch


Decay: TypeAlias = Annotated[float, Field(ge=0, lt=1)]
"""How much of a running mean each step keeps."""


class Optimizer(Component):
    """A rule by which gradients change weights, gradient clipping and numerical precision."""

    default_name: ClassVar[str] = "adamw"
    name_optional: ClassVar[bool] = True
    trains_sharded: ClassVar[bool] = True
    """Whether weights that are divided among ranks can be trained."""
    trains_dense: ClassVar[bool] = True
    """Whether parameters other than embedding tables with sparse gradients can be trained."""

    lr: float = Field(5e-4, gt=0, le=1000)
    """Peak learning rate."""
    weight_decay: float = Field(0.01, ge=0, le=1000)
    """Rate of decay of matrices; biases and normalisation gains do not decay."""
    clip: float | None = Field(1.0, gt=0)
    """Global gradient norm above which gradients are scaled down; null: never."""
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"
    """`auto`: bfloat16 autocast where the processor or GPU supports it, else float32."""

    @model_validator(mode="after")
    def _sparse_rows_do_not_decay(self) -> Self:
        if self.sparse_gradients and self.weight_decay:
            raise ValueError(
                "sparse gradients leave most rows untouched, but weight decay is on all; set weight_decay: 0"
            )
        return self

    @abstractmethod
    def create(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """The optimizer over torch's parameter `groups` (`params`, `lr`, `weight_decay`, `is_head`)."""

    def adamw_options(self) -> dict[str, Any] | None:
        """`betas` and `eps` where `create` gives torch's AdamW, so that an accelerator or a strategy may bring an AdamW
        of its own instead; None for any other rule."""
        return None

    @property
    def sparse_gradients(self) -> bool:
        """Whether embedding tables get sparse gradients, so that a step reads and writes only the rows of its batch.

        Ranks exchange dense gradients only: such a stage trains on a single one.
        """
        return False

    @property
    def needs_abilities(self) -> frozenset[Ability]:
        """Abilities that the backbone must offer: a network that is more than tables gains nothing from sparse
        gradients."""
        return frozenset({Ability.STATIC}) if self.sparse_gradients else frozenset()


class ClipsGradients:
    """Marker of an optimizer that clips the global gradient norm within its step: the training loop then does not
    clip."""


def call_with_gradient(closure: Callable[[], Any] | None) -> Any:
    """The loss that the `closure` of a step returns, computed with gradients as the step is not; None without one."""
    if closure is None:
        return None
    import torch

    with torch.enable_grad():
        return closure()
