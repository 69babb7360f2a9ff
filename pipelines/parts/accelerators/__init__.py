"""Accelerators: what makes a training step faster without changing what it computes.

The training loop applies every accelerator that is installed and fits the device; nothing else refers to one. Without any, the
same steps are computed by plain torch, more slowly.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pipelines.components import Component, discover

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from transformers import PreTrainedModel


class Accelerator(Component):
    """A faster way to the same step."""

    version: ClassVar[int]
    """Part of the identity of every stage that trains, in place of the accelerator's sources: its author raises it when the
    numbers that it computes change."""

    @abstractmethod
    def applies(self, device: str) -> bool:
        """Whether it can be of use on `device`, "cpu" or "gpu"."""

    @abstractmethod
    def give(self, networks: Sequence[PreTrainedModel], folder: Path) -> bool:
        """Let `networks` compute with it; False, with the reason in the log, where that is not possible.

        `folder` keeps what it compiles. Modules keep their names and weights, so that checkpoints do not depend on it.
        """

    def optimizer(
        self, groups: list[dict[str, Any]], *, clip: float, sparse: bool, options: dict[str, Any]
    ) -> Optimizer | None:
        """An AdamW over torch's parameter `groups`, whose checkpoints are those of torch's; None where it has none that fits.

        `clip` is the largest global gradient norm. `sparse` allows gradients of embeddings as rows, which ranks that exchange
        gradients cannot use. `options` holds betas and eps.
        """
        return None


def every_accelerator() -> tuple[Accelerator, ...]:
    """All accelerators that are installed, by name."""
    discover(__name__)
    return tuple(Accelerator.members[name]() for name in sorted(Accelerator.members))  # type: ignore[misc]  # mypy reads the base


def versions() -> dict[str, int]:
    """Accelerator → version, of all that are installed."""
    return {one.name: one.version for one in every_accelerator()}
