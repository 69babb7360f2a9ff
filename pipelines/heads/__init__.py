"""Heads: what is put on a body, and how its outputs become signals.

A head owns the translation from each architecture's own output names and modules to the closed vocabulary of signals.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pipelines.components import Component
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel


class Head(Component):
    """A way of asking a body for something."""

    needs: ClassVar[frozenset[Field]] = frozenset({Field.INPUT_IDS})
    provides: ClassVar[frozenset[Signal]]

    @abstractmethod
    def build(self, config: PretrainedConfig, labels: Sequence[str]) -> PreTrainedModel:
        """A new network, randomly initialised from the global generator: a body of `config` under this head.

        `labels` are the task's classes in order, empty for a stage without labels. The body's weights carry the names
        that the architecture itself gives them, so the saved folder's body opens in plain transformers.
        """

    @abstractmethod
    def signals(
        self, network: PreTrainedModel, batch: Mapping[Field, Tensor], wanted: frozenset[Signal]
    ) -> dict[Signal, Tensor | tuple[Tensor, ...]]:
        """Run `network` on `batch` and name what it says. At least `wanted` ⊆ `provides` is returned."""
