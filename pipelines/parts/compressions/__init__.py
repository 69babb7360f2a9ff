"""Compressions: make a network smaller, before, during or after further training.

    network ──▶ choose (may see calibration batches) ──▶ change ──▶ rebuild ──▶ smaller network
                                                            │
    opened again: network of the configuration ──────────▶ rebuild ──▶ the same shapes, for the saved weights
                                                            │
    trained, here or in a later stage: after every step ─▶ constraint ─▶ weights that are zero stay zero

A change is what the configuration cannot state. It is kept in the record of the saved folder, so that the folder is
opened by one call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

from pipelines.components import Component
from pipelines.networks.shape import NetworkShape
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.stored_size import StoredSize

Batch: TypeAlias = "Mapping[Field, Any]"
Change: TypeAlias = Mapping[str, Any]
"""Path of a module below the backbone → what was changed of it, as a JSON value; empty if the configuration records
it."""


class Level(IntEnum):
    """What a compression removes. Compressions follow each other from coarse to fine: a finer change names modules that
    a coarser one would remove or renumber.

    Of the level of single weights are also those that train them with the values of few bits; of the last one, all that
    store weights as they are served, without their zeros too.
    """

    LAYERS = 0
    WIDTHS = 1
    """Neurons of layers."""
    HEADS = 2
    """Heads of attention."""
    WEIGHTS = 3
    """Single weights, which become zero; no module changes its shape."""
    BITS = 4
    """Weights of fewer bits: nothing trains them, and nothing compresses them further."""


class Calibration(Protocol):
    """Batches of the stage's own corpus, and what the stage computes of them."""

    @property
    def seed(self) -> int:
        """Seed of the stage."""

    def batches(self) -> Iterator[Batch]:
        """The same batches in every call, `budget.calibration` of them: examples drawn by the seed, or rows of plain
        text. Raises DataError for a corpus without any."""

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> Mapping[Signal, Any]:
        """The signals of the stage's head for `batch`, without dropout."""

    def loss(self, network: PreTrainedModel, batch: Batch) -> Tensor:
        """The weighted sum of the stage's objectives for `batch` without dropout, a scalar with gradient. Objectives
        with a teacher or another companion are left out."""

    def decide(self, choose: Callable[[], Change]) -> Change:
        """`choose()`, computed once: every rank, and a stage that is resumed, gets the same value."""


@runtime_checkable
class StatefulConstraint(Protocol):
    """A constraint that knows of earlier steps what the weights do not show. Its state is in every checkpoint."""

    def __call__(self, progress: float, /) -> None: ...

    def state(self) -> dict[str, Any]:
        """Tensors and numbers by name; a resumed stage passes them to `restore` before the first call."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""


class Shrunk(NamedTuple):
    """A smaller network, and how to build its like."""

    network: PreTrainedModel
    change: Change


class Compression(Component):
    """A conversion of a network to a smaller one. A member overrides `choose` and `rebuild`, or `shrink` where the
    configuration records the change, or `convert`."""

    level: ClassVar[Level]
    replaces_weights: ClassVar[bool] = False
    """True if the member overrides `convert`, whose output is served instead of `model.safetensors`."""

    @property
    def needs_calibration(self) -> bool:
        """Whether `choose` or `convert` reads batches of the stage's corpus."""
        return self.needs_gradients

    @property
    def needs_gradients(self) -> bool:
        """Whether `choose` differentiates the loss of the stage's objectives."""
        return False

    @property
    def complete_after(self) -> float:
        """Share of the stage's steps after which the compression is complete; 0 if it is before the first step.
        Weights of earlier validations are not kept as the best ones."""
        return 0.0

    @property
    def draws(self) -> bool:
        """Whether `choose` depends on the stage's seed."""
        return self.needs_calibration

    def shape_after(self, shape: NetworkShape) -> NetworkShape:
        """The shape of a network that had `shape` before."""
        return shape

    def size_after(self, size: StoredSize) -> StoredSize:
        """About how many bytes, at most, a network has that had `size` before."""
        return size

    def shrink(self, network: PreTrainedModel, calibration: Calibration | None = None) -> Shrunk:
        """The smaller network that the following training starts from. `calibration` may be None for a member that
        needs none."""
        if calibration is None:
            change = self.choose(network, calibration)
        else:
            change = calibration.decide(lambda: self.choose(network, calibration))
        return Shrunk(self.rebuild(network, change) if change else network, change)

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        """What to change of `network`, which is left as it is."""
        return {}

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        """`network` with `change` made, weights included; draws no random numbers."""
        return network

    def constraint(self, network: PreTrainedModel, change: Change) -> Callable[[float], None] | None:
        """What keeps `network` as `change` made it while its weights train; None if training cannot undo the change.

        It is called after every optimizer step with the share of the stage's steps that are done, and with 1.0 in later
        stages. This method is called when the first step begins, also of a resumed stage, whose weights are then those
        of the checkpoint: what it must know of earlier steps is in the weights, or it is a `StatefulConstraint`. Draws
        no random numbers.
        """
        return None

    def convert(
        self, source: Path, network: PreTrainedModel, out: Path, calibration: Calibration | None = None
    ) -> None:
        """Write the compressed form of the Hugging Face folder `source`, for serving, into `out`.

        `network` is the classifier saved in `source`, float32, in evaluation mode. `calibration` may be None for a
        member that needs none.
        """
