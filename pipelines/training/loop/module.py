"""The one LightningModule: for every recipe, training is batch → rewrite → signals → objectives → weighted sum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytorch_lightning as lightning
import torch
from torch import Tensor, nn

from pipelines.errors import RecipeError
from pipelines.parts.accelerators import Accelerator
from pipelines.parts.distributions import Distribution
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.strategies import Decision, ParameterGroup, TrainingProgress
from pipelines.training.assembly.optimizer import create_optimizer
from pipelines.training.assembly.parameter_groups import optimizer_groups, trainable_groups
from pipelines.training.loop.clipping import clip_gradients
from pipelines.training.loop.seeding import seed_generators
from pipelines.training.metrics_log import MetricsLog
from pipelines.training.ranks import process_group
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.recipe.schema import Stage
    from pipelines.training.batches.micro_batches import MicroBatch, Partition
    from pipelines.training.batches.stage_batches import StageBatches
    from pipelines.training.loop.stopping import StopRequest
    from pipelines.training.loop.trained_line import TrainedLine
    from pipelines.training.loop.validation import StageValidation


class StageModule(lightning.LightningModule):
    """A network, and the lines of the stage that train it."""

    def __init__(
        self,
        stage: Stage,
        network: PreTrainedModel,
        lines: Sequence[TrainedLine],
        batches: StageBatches,
        partition: Partition,
        distribution: Distribution,
        validation: StageValidation | None,
        log: MetricsLog,
        stop: StopRequest,
        accelerators: Sequence[Accelerator] = (),
    ) -> None:
        super().__init__()
        self.stage, self.network, self.batches, self.validation, self.metrics = stage, network, batches, validation, log
        self.partition, self.distribution, self.stop, self.accelerators = partition, distribution, stop, accelerators
        self.stopping = False
        """Whether all ranks have agreed to stop after this step."""
        self.lines = tuple(lines)
        # of the companions only those that train are part of this module's weights, checkpoints and training mode
        trained = {
            f"{line.name}-{name}" if line.name else name: one
            for line in lines
            for name, one in line.trained_modules.items()
        }
        self.trained_companions = nn.ModuleDict(trained)
        self._memory: dict[tuple[int, int], tuple[Tensor, ...]] = {}
        """Line and micro-batch of this rank → its memory: each continues the same micro-batch of the batch before."""
        self._has_memory = any(line.has_memory for line in lines)
        self._trainable_parameters_change = any(Decision.WHEN in strategy.decides for strategy in stage.strategy)
        """Whether a strategy freezes or unfreezes parameters during the stage, not only in `configure_model`."""
        self._groups: list[ParameterGroup] = []
        self._start: dict[str, Tensor] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_current_fx_name":  # set by Lightning for each hook it calls, 46 times a step; no weight
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def configure_model(self) -> None:
        """Shard the network, then decide which weights train: sharding replaces the parameters."""
        if self._groups:
            return
        network, stage = self.network, self.stage
        if self.distribution.shards_weights:
            assert self.device_mesh is not None
            self.distribution.shard(network, self.device_mesh["data_parallel"])
        self._groups = trainable_groups(network, stage.strategy, stage.optimizer.lr, stage.optimizer.weight_decay)
        trained = {id(parameter) for group in self._groups for _, parameter in group.parameters}
        for parameter in network.parameters():
            parameter.requires_grad_(id(parameter) in trained)
        if any(Decision.HOLD in strategy.decides for strategy in stage.strategy):
            self._start = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}

    @property
    def trained_share(self) -> float:
        """Share of the network's weights that train."""
        trained = sum(parameter.numel() for group in self._groups for _, parameter in group.parameters)
        return trained / self.network.num_parameters()

    @property
    def _progress(self) -> float:
        """Share of the stage's steps that were done before this one; of the last step, after the end."""
        return min(self.global_step, len(self.batches) - 1) / len(self.batches)

    def on_fit_start(self) -> None:
        for line in self.lines:
            for companion in line.companions.values():
                # transformers wraps `to` and loses its signature
                companion.network.to(self.device)  # type: ignore[arg-type]

    def training_step(self, micro_batch: MicroBatch, index: int) -> Tensor:
        number = index % self.partition.accumulated
        at_line = self.batches.line_of(self.global_step)
        line = self.lines[at_line]
        if number == 0:
            self._begin_step(micro_batch.rank_counts)
        fields: dict[Field, Any] = {Field(name): value for name, value in micro_batch.fields.items()}
        if (at_line, number) in self._memory and self.batches.continues(self.global_step):
            fields[Field.MEMORY] = self._memory[at_line, number]
        fields = dict(line.features.with_states(fields, fields.get(Field.ITEMS)))
        step = TrainingStep(
            fields, {}, line.network, line.call_companion, line.needed_signals, line.overwritable_signals, line.modules
        )
        step.companions, step.progress = line.companions, self._progress
        if self.partition.ranks > 1:
            step.all_gather = lambda rows: process_group.all_gather_rows(rows if micro_batch.counted else rows[:0])
        for objective in line.objectives:
            step.batch = objective.rewrite(step)
        if step.batch is not fields:  # rewritten rows no longer correspond to items
            step.batch = {name: value for name, value in step.batch.items() if name is not Field.ITEMS}
        needed = line.needed_signals | {Signal.MEMORY} if line.has_memory else line.needed_signals
        step.signals = self.distribution.compute(
            self.network, lambda: line.head.signals(line.network, step.batch, needed)
        )
        if line.has_memory:
            self._memory[at_line, number] = step.signals[Signal.MEMORY]
        total, terms = self._loss(line, step, self._shares(micro_batch))
        for strategy, state in zip(self.stage.strategy, self._strategy_states, strict=True):
            for name, value in strategy.penalty(self.network, state).items():
                terms[name] = value / self.partition.size
                total = total + terms[name]
        if not math.isfinite(loss := total.item()):
            where = f" (line {line.name})" if line.name else ""
            raise RecipeError(f"the loss of step {self.global_step + 1}{where} is {loss}; lower optimizer.lr")
        if line.name:
            terms[line.term_name("loss")] = total
        for name, value in {"loss": total, **terms}.items():
            self._terms[name] = self._terms[name] + value.detach() if name in self._terms else value.detach()
        if number == self.partition.accumulated - 1:
            at, total_steps = self.global_step + 1, len(self.batches)
            rate = self.stage.optimizer.lr * self.stage.schedule.factor(self.global_step, total_steps)
            self.metrics.train(at, self._terms, rate, last=at == total_steps)
        # Lightning divides by the accumulation steps, and DDP by the ranks, but micro-batches must be summed
        return total if self.partition.size == 1 else total * self.partition.size

    def _begin_step(self, counts: dict[str, int] | None) -> None:
        """Sum the term counts of the whole batch over all ranks, and agree with them on whether to stop after it."""
        self._terms: dict[str, Tensor] = {}
        self.stopping = self.stop.pending
        if counts is not None:
            own = torch.tensor([*counts.values(), self.stopping], dtype=torch.int64)
            *totals, stopping = process_group.all_reduce_sum(own).tolist()
            self._batch_counts, self.stopping = dict(zip(counts, totals, strict=True)), bool(stopping)

    def _shares(self, micro_batch: MicroBatch) -> dict[str, float | None] | None:
        """Loss term → share of the micro-batch in its batch; None for a term that is a mean over no items here.

        None instead of the dictionary where the micro-batch is the whole batch.
        """
        if micro_batch.term_counts is None:
            return None
        return {
            name: None if micro_batch.counted and not count else count / max(1, self._batch_counts[name])
            for name, count in micro_batch.term_counts.items()
        }

    def _loss(
        self,
        line: TrainedLine,
        step: TrainingStep,
        shares: dict[str, float | None] | None = None,
        *,
        held_out: bool = False,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The weighted loss of a line, and its terms under the names that they have in the metrics."""
        terms: dict[str, Tensor] = {}
        total = torch.zeros((), device=self.device)
        for objective in line.objectives:
            if held_out and objective.needs_teacher:
                continue
            for name, value in objective.loss(step).items():
                if shares is not None:
                    share = shares[name]
                    # a mean over no items may be NaN: its gradient must not be used
                    value = self._zero() if share is None else value * share
                terms[line.term_name(name)] = value
                factor = objective.factor(step.progress)
                total = total + (value if factor == 1 else factor * value)
        return (total if line.weight == 1 else line.weight * total), terms

    def _zero(self) -> Tensor:
        """0 with a gradient: all ranks run backward together, even where one has no items."""
        return 0.0 * next(p for p in self.network.parameters() if p.requires_grad).flatten()[0]

    def validation_step(self, batch: dict[str, Tensor], index: int) -> None:
        assert self.validation is not None
        name, number = self.validation.locate(index)
        line = next(one for one in self.lines if one.name == name)
        given = {Field(field): value for field, value in batch.items()}
        fields = self.validation.lines[name].with_features(number, given, line.network)
        needed = line.needed_signals | line.head.answers_from
        signals = {}
        if needed:
            signals = self.distribution.compute(self.network, lambda: line.head.signals(line.network, fields, needed))
        step = TrainingStep(
            fields, signals, line.network, line.call_companion, line.needed_signals, modules=line.modules
        )
        step.progress = self._progress
        total, terms = self._loss(line, step, held_out=True)
        self.validation.lines[name].add_batch(number, given, signals, float(total) if terms else None)

    def on_validation_epoch_end(self) -> None:
        assert self.validation is not None
        # every rank has read all held-out examples, but rounding might make two of them disagree
        values = process_group.broadcast_from_first(
            self.validation.scores({line.name: line.network for line in self.lines})
        )
        self.log(self.validation.monitor, values[self.validation.monitor], logger=False)
        self.metrics.write(self.global_step, values)

    def configure_optimizers(self) -> Any:
        chosen, schedule, total = self.stage.optimizer, self.stage.schedule, len(self.batches)
        groups = optimizer_groups(self._groups, self.network, self.trained_companions.values(), chosen)
        with self._at_start():
            self._strategy_states = [strategy.begin(self.network) for strategy in self.stage.strategy]
            own = [one.optimizer(groups, total, chosen.adamw_options() or {}) for one in self.stage.strategy]
        optimizer = next((one for one in own if one is not None), None) or create_optimizer(
            chosen, groups, self.network, self.accelerators, self.partition.ranks
        )
        rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule.factor(step, total))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rates, "interval": "step"}}

    @contextmanager
    def _at_start(self) -> Iterator[None]:
        """Give the network the weights its stage starts from: Lightning restores those of a checkpoint before it
        creates optimizers.

        The present weights are restored afterwards.
        """
        held = [(parameter, self._start[name]) for name, parameter in self.network.named_parameters() if self._start]
        now = [parameter.detach().clone() for parameter, _ in held]
        with torch.no_grad():
            for parameter, then in held:
                parameter.copy_(then)
            yield
            for (parameter, _), value in zip(held, now, strict=True):
                parameter.copy_(value)
        self._start = {}

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        clip_gradients(optimizer, self.stage.optimizer.clip)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["metrics"] = self.metrics.pending()
        checkpoint["memory"] = process_group.all_gather(self._memory) if self._has_memory else []

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.batches.start = checkpoint["global_step"]
        self.metrics.rewind(checkpoint["metrics"])
        if len(checkpoint["memory"]) == self.partition.ranks:
            self._memory = checkpoint["memory"][self.partition.rank]

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        # batches are created on the CPU: nothing to move, and Lightning's traversal is skipped
        return batch if device.type == "cpu" else super().transfer_batch_to_device(batch, device, dataloader_idx)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        # random numbers are a function of the step: no generator state in checkpoints, and no dependence on earlier
        # steps
        number = self.partition.rank * self.partition.accumulated + batch_idx % self.partition.accumulated
        seeds = np.random.SeedSequence([self.batches.seed, 5, self.global_step, number])
        seed_generators(int(seeds.generate_state(1, np.uint64)[0] >> 1), self.device)
        if not self._trainable_parameters_change:
            return
        progress = TrainingProgress(self.global_step, len(self.batches), self.batches.steps_per_epoch)
        for one in self._groups:
            trains = all(strategy.trains(one, progress) for strategy in self.stage.strategy)
            for _, parameter in one.parameters:
                parameter.requires_grad_(trains)
