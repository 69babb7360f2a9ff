"""What the compressions of a stage see of its corpus: batches, signals, losses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError
from pipelines.lineage.disk import write_text_atomically
from pipelines.lineage.results import SCRATCH
from pipelines.parts.compressions import Batch, Change
from pipelines.parts.objectives import Signals, TrainingStep
from pipelines.training.loop.inputs import batches_of
from pipelines.training.ranks import process_group
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.recipe.job import Job
    from pipelines.task_families import Task
    from pipelines.training.batches.stage_batches import StageBatches


class StageCalibration:
    """The calibration of a job's stage. Every rank constructs one, and only rank 0 reads its batches.

    `tasks` are those of `batches_of`; a stage whose compressions need data has no lines.
    """

    def __init__(self, job: Job, tasks: Mapping[str, Task | None], tokenizer: PreTrainedTokenizerFast) -> None:
        self._stage, self._seed, self._scratch = job.stage, job.seed, job.out / SCRATCH
        self._decisions = 0
        self._batches: StageBatches | None = None
        if any(one.needs_calibration for one in job.stage.compression):
            budget = job.stage.budget
            rows = max(1, budget.batch_tokens // budget.length)
            tokens = budget.calibration * rows * budget.length
            plain = tasks[""] is None
            amount = {"tokens": tokens, "epochs": None} if plain else {"tokens": None, "epochs": 1.0}
            stage = job.stage.model_copy(update={"budget": budget.model_copy(update=amount)})
            self._batches = batches_of(job.model_copy(update={"stage": stage}), tasks, tokenizer)

    @property
    def seed(self) -> int:
        return self._seed

    def batches(self) -> Iterator[Batch]:
        assert self._batches is not None, "no compression of the stage needs calibration"
        number = min(self._stage.budget.calibration, len(self._batches))
        if number == 0:
            raise DataError("the calibration set is empty: the corpus of the stage has no examples")
        for step in range(number):
            yield {Field(name): value for name, value in self._batches.micro_batch(step, 0, 1).items()}

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> Mapping[Signal, Any]:
        assert self._stage.head is not None
        network.eval()
        moved = {name: value.to(network.device) if hasattr(value, "to") else value for name, value in batch.items()}
        return self._stage.head.signals(network, moved, requested)

    def loss(self, network: PreTrainedModel, batch: Batch) -> Tensor:
        import torch

        objectives = self._stage.differentiated
        requested = frozenset[Signal]().union(*(objective.required_signals for objective in objectives))
        moved = {name: value.to(network.device) if hasattr(value, "to") else value for name, value in batch.items()}
        step = TrainingStep(moved, {}, network, _no_companion, requested)
        network.eval()
        for objective in objectives:
            step.batch = objective.rewrite(step)
        step.signals = self.signals(network, step.batch, requested)
        terms = [objective.weight * value for objective in objectives for value in objective.loss(step).values()]
        return torch.stack(terms).sum()

    def decide(self, choose: Callable[[], Change]) -> Change:
        path = self._scratch / f"change-{self._decisions}.json"
        self._decisions += 1
        change: Change | None = None
        if process_group.rank() == 0:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                write_text_atomically(path, json.dumps(choose()))
            change = json.loads(path.read_text(encoding="utf-8"))
        agreed = process_group.broadcast_from_first(change)
        assert agreed is not None
        return agreed


def _no_companion(name: str, batch: Batch, requested: frozenset[Signal]) -> Signals:
    raise AssertionError(f"a calibration has no companions, and {name} was called")
