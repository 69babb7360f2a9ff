"""Accelerators: faster ways to compute the same training step.

The training loop applies every installed accelerator that supports the device; nothing else refers to one. Without any,
plain torch computes the same steps, more slowly.
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
    """A faster way to compute the same training step."""

    version: ClassVar[int]
    """Part of the identity of every stage that trains, in place of the accelerator's sources: raise it when the numbers
    that the accelerator computes change."""

    @abstractmethod
    def applies(self, device: str) -> bool:
        """Whether the accelerator supports `device`, "cpu" or "gpu"."""

    @abstractmethod
    def accelerate(self, networks: Sequence[PreTrainedModel], folder: Path) -> bool:
        """Modify `networks` in place to use the accelerator; False, with the reason in the log, where that is not
        possible.

        Compiled files are stored in `folder`. Modules keep their names and weights, so that checkpoints do not depend
        on the accelerator.
        """

    def optimizer(
        self, groups: list[dict[str, Any]], *, clip: float, sparse: bool, options: dict[str, Any]
    ) -> Optimizer | None:
        """An AdamW over torch's parameter `groups`, with the checkpoint format of torch's own; None where there is none
        for them.

        `clip` is the maximum global gradient norm. `sparse` allows sparse gradients of embeddings, which ranks that
        exchange gradients cannot use. `options` holds betas and eps.
        """
        return None


def installed_accelerators() -> tuple[Accelerator, ...]:
    """All installed accelerators, sorted by name."""
    discover(__name__)
    # mypy reads the base
    return tuple(Accelerator.members[name]() for name in sorted(Accelerator.members))  # type: ignore[misc]


def versions() -> dict[str, int]:
    """Name → version of every installed accelerator."""
    return {one.name: one.version for one in installed_accelerators()}
