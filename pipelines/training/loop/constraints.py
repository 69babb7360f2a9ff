"""What compressions ask of the weights after every optimizer step, of this stage and of the stages before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pytorch_lightning as lightning
from pytorch_lightning.callbacks import Callback

from pipelines.models.opening import ModelRecord, RecordedChange
from pipelines.parts.compressions import Compression, StatefulConstraint

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.recipe.schema import Stage


def constraining_changes(network: PreTrainedModel) -> list[RecordedChange]:
    """The changes made of `network` that training could undo."""
    record = ModelRecord.read(network.config)
    changes = () if record is None else record.changes
    return [one for one in changes if type(one.compression).constraint is not Compression.constraint]


def complete_after(stage: Stage, steps: int) -> int:
    """The optimizer step after which all compressions of a stage of `steps` steps are complete."""
    return math.ceil(steps * max((one.complete_after for one in stage.compression), default=0.0))


class Constraints(Callback):
    """Keeps `network` as `changes` made it. Register this callback before those that write weights."""

    def __init__(self, network: PreTrainedModel, changes: Sequence[RecordedChange], stage: Stage, steps: int) -> None:
        self.network, self.changes, self.stage, self.steps = network, changes, stage, steps
        self._constraints: list[tuple[Callable[[float], None], bool]] = []
        """Each with whether it is made in the course of this stage."""
        self._restored: dict[str, Any] = {}

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        made = [(one.compression.constraint(self.network, one.modules), one.compression) for one in self.changes]
        self._constraints = [(keep, by in self.stage.compression) for keep, by in made if keep is not None]
        for number, (keep, _) in enumerate(self._constraints):
            if isinstance(keep, StatefulConstraint) and (state := self._restored.get(str(number))):
                keep.restore(state)

    def state_dict(self) -> dict[str, Any]:
        """By the number of the constraint, for the checkpoint."""
        return {
            str(number): keep.state()
            for number, (keep, _) in enumerate(self._constraints)
            if isinstance(keep, StatefulConstraint)
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._restored = state_dict  # the constraints are made when the first step begins

    def on_train_batch_end(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if (batch_idx + 1) % trainer.accumulate_grad_batches:
            return  # in the middle of an optimizer step
        for keep, in_this_stage in self._constraints:
            keep(trainer.global_step / self.steps if in_this_stage else 1.0)
