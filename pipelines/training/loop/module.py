"""The one LightningModule: whatever a recipe asks for, training is batch → rewrite → signals → objectives → weighted sum."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytorch_lightning as lightning
import torch
from torch import Tensor, nn

from pipelines.errors import RecipeError
from pipelines.parts.accelerators import Accelerator
from pipelines.parts.distributions import Distribution
from pipelines.parts.objectives import Batch, Companion, Signals, TrainingStep
from pipelines.parts.optimizers import ClipsGradients
from pipelines.parts.strategies import Decision, Group, Progress
from pipelines.training.assembly.answer_cache import RememberedAnswers
from pipelines.training.assembly.parameter_groups import groups_of
from pipelines.training.metrics_log import MetricsLog
from pipelines.training.ranks import process_group as group
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.recipe.schema import Stage
    from pipelines.training.batches.examples import ExampleBatches
    from pipelines.training.batches.micro_batches import Cut, Piece
    from pipelines.training.batches.plain_text import PlainBatches
    from pipelines.training.loop.stopping import Stop
    from pipelines.training.loop.validation import Validation

EPSILON = 1e-6
"""AdamW's ε, as BERT's and RoBERTa's optimizers had it."""


class StageModule(lightning.LightningModule):
    """A network, its companions, and the stage's objectives."""

    def __init__(
        self,
        stage: Stage,
        network: PreTrainedModel,
        companions: dict[str, Companion],
        batches: PlainBatches | ExampleBatches,
        cut: Cut,
        distribution: Distribution,
        validation: Validation | None,
        log: MetricsLog,
        stop: Stop,
        accelerators: Sequence[Accelerator] = (),
    ) -> None:
        super().__init__()
        self.stage, self.network, self.batches, self.validation, self.metrics = stage, network, batches, validation, log
        self.cut, self.distribution, self.stop, self.accelerators = cut, distribution, stop, accelerators
        self.stopping = False
        """Whether all ranks have agreed to stop after this step."""
        assert stage.head is not None
        self.head = stage.head
        # a frozen companion is no part of this module's weights, checkpoints or training mode; one that trains is
        self._companions = companions
        self._answers: dict[str, Callable[[Batch, frozenset[Signal]], Signals]] = {}
        for name, one in companions.items():
            if one.trains or batches.items is None:
                self._answers[name] = one.ask
            else:
                self._answers[name] = RememberedAnswers(one.ask, batches.items)
        self.trained_companions = nn.ModuleDict({name: one.network for name, one in companions.items() if one.trains})
        self._wanted = frozenset().union(*(objective.needs_signals for objective in stage.objective))
        readers = Counter(signal for objective in stage.objective for signal in objective.needs_signals)
        self._spent = frozenset(signal for signal, number in readers.items() if number == 1)
        able = stage.backbone is not None and Ability.MEMORY in stage.backbone.offers
        self._remembers = able and Field.MEMORY in stage.layout.provides and Signal.MEMORY in stage.head.provides
        self._memory: dict[int, tuple[Tensor, ...]] = {}
        """By piece of this rank: each continues the same piece of the batch before."""
        self._in_turns = any(Decision.WHEN in strategy.decides for strategy in stage.strategy)
        """Whether who trains changes while it goes on; otherwise `configure_model` has settled it."""
        self._groups: list[Group] = []
        self._start: dict[str, Tensor] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_current_fx_name":  # Lightning notes each hook that it calls, 46 times a step, and it is no weight
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def configure_model(self) -> None:
        """Decide which weights train, once they are where they stay: what is divided becomes other parameters."""
        if self._groups:
            return
        network, stage = self.network, self.stage
        if self.distribution.divides:
            assert self.device_mesh is not None
            self.distribution.divide(network, self.device_mesh["data_parallel"])
        self._groups = groups_of(network, stage.strategy, stage.optimizer.lr, stage.optimizer.weight_decay)
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

    def on_fit_start(self) -> None:
        for companion in self._companions.values():
            companion.network.to(self.device)  # type: ignore[arg-type]  # transformers wraps `to` and loses its signature

    def training_step(self, piece: Piece, index: int) -> Tensor:
        number = index % self.cut.accumulated
        if number == 0:
            self._begin_step(piece.of_rank)
        fields: dict[Field, Any] = {Field(name): value for name, value in piece.fields.items()}
        if number in self._memory and self.batches.continues(self.global_step):
            fields[Field.MEMORY] = self._memory[number]
        step = TrainingStep(fields, {}, self.network, self._ask, self._wanted, self._spent)
        if self.cut.ranks > 1:
            step.gathered = lambda rows: group.gathered(rows if piece.counts else rows[:0])
        for objective in self.stage.objective:
            step.batch = objective.rewrite(step)
        if step.batch is not fields:  # its rows are no items any more
            step.batch = {name: value for name, value in step.batch.items() if name is not Field.ITEMS}
        wanted = self._wanted | {Signal.MEMORY} if self._remembers else self._wanted
        step.signals = self.head.signals(self.network, step.batch, wanted)
        if self._remembers:
            self._memory[number] = step.signals[Signal.MEMORY]
        total, terms = self._loss(step, self._shares(piece))
        for strategy, remembered in zip(self.stage.strategy, self._remembered, strict=True):
            for name, value in strategy.penalty(self.network, remembered).items():
                terms[name] = value / self.cut.pieces
                total = total + terms[name]
        if not math.isfinite(found := total.item()):
            raise RecipeError(f"the loss of step {self.global_step + 1} is {found}; lower optimizer.lr")
        for name, value in {"loss": total, **terms}.items():
            self._terms[name] = self._terms[name] + value.detach() if name in self._terms else value.detach()
        if number == self.cut.accumulated - 1:
            at, total_steps = self.global_step + 1, len(self.batches)
            rate = self.stage.optimizer.lr * self.stage.schedule.factor(self.global_step, total_steps)
            self.metrics.train(at, self._terms, rate, last=at == total_steps)
        # Lightning divides by what is accumulated, and DDP by the ranks: the pieces are to be summed
        return total if self.cut.pieces == 1 else total * self.cut.pieces

    def _begin_step(self, counts: dict[str, int] | None) -> None:
        """Agree with the other ranks on how much the whole batch holds, and on whether to stop after it."""
        self._terms: dict[str, Tensor] = {}
        self.stopping = self.stop.asked
        if counts is not None:
            said = torch.tensor([*counts.values(), self.stopping], dtype=torch.int64)
            *together, stopping = group.summed(said).tolist()
            self._together, self.stopping = dict(zip(counts, together, strict=True)), bool(stopping)

    def _shares(self, piece: Piece) -> dict[str, float | None] | None:
        """What the terms of a piece count for in those of its batch; None for a term that is a mean over nothing there.

        None altogether where the piece is the batch.
        """
        if piece.own is None:
            return None
        return {
            name: None if piece.counts and not count else count / max(1, self._together[name])
            for name, count in piece.own.items()
        }

    def _loss(
        self, step: TrainingStep, shares: dict[str, float | None] | None = None, *, held_out: bool = False
    ) -> tuple[Tensor, dict[str, Tensor]]:
        terms: dict[str, Tensor] = {}
        total = torch.zeros((), device=self.device)
        for objective in self.stage.objective:
            if held_out and objective.needs_teacher:
                continue
            for name, value in objective.loss(step).items():
                if shares is not None:
                    share = shares[name]
                    # the mean over nothing may be no number: its gradient must not come through
                    value = self._nothing() if share is None else value * share
                terms[name] = value
                total = total + (value if objective.weight == 1 else objective.weight * value)
        return total, terms

    def _nothing(self) -> Tensor:
        """0, of which there is a gradient: ranks go back together even where one has nothing to learn."""
        return 0.0 * next(p for p in self.network.parameters() if p.requires_grad).flatten()[0]

    def _ask(self, name: str, batch: Batch, wanted: frozenset[Signal]) -> Signals:
        return self._answers[name](batch, wanted)

    def validation_step(self, batch: dict[str, Tensor], index: int) -> None:
        assert self.validation is not None
        fields = {Field(name): value for name, value in batch.items()}
        wanted = self._wanted | self.head.answers_from
        signals = self.head.signals(self.network, fields, wanted) if wanted else {}
        step = TrainingStep(fields, signals, self.network, self._ask, self._wanted)
        total, terms = self._loss(step, held_out=True)
        self.validation.hear(index, fields, signals, float(total) if terms else None)

    def on_validation_epoch_end(self) -> None:
        assert self.validation is not None
        # every rank has read all held-out examples, and rounding might let two of them disagree
        values = group.told_by_first(self.validation.scores(self.network))
        self.log(self.validation.monitor, values[self.validation.monitor], logger=False)
        self.metrics.write(self.global_step, values)

    def configure_optimizers(self) -> Any:
        chosen, schedule, total = self.stage.optimizer, self.stage.schedule, len(self.batches)
        # an optimizer calls its kernel once for each group: depths that are treated alike are one
        alike: dict[tuple[float, float, bool], list[nn.Parameter]] = {}
        for one in self._groups:
            kind = (one.lr, one.weight_decay, one.is_head)
            alike.setdefault(kind, []).extend(value for _, value in one.parameters)
        shared = {id(parameter) for parameter in self.network.parameters()}
        for companion in self.trained_companions.values():
            own = [parameter for parameter in companion.parameters() if id(parameter) not in shared]
            for decay, matrices in ((chosen.weight_decay, True), (0.0, False)):
                beside = [parameter for parameter in own if (parameter.ndim > 1) is matrices]
                alike.setdefault((chosen.lr, decay, True), []).extend(beside)
        groups: list[dict[str, Any]] = [
            {"params": params, "lr": lr, "weight_decay": decay, "is_head": is_head}
            for (lr, decay, is_head), params in alike.items()
        ]
        options: dict[str, Any] = {"betas": chosen.betas, "eps": EPSILON}
        with self._at_start():
            self._remembered = [strategy.begin(self.network) for strategy in self.stage.strategy]
            brought = [strategy.optimizer(groups, total, options) for strategy in self.stage.strategy]
        sparse = self.cut.ranks == 1
        brought += [
            one.optimizer(groups, clip=chosen.clip, sparse=sparse, options=options)
            for one in (self.accelerators if all(one is None for one in brought) else ())
        ]
        optimizer = next((one for one in brought if one is not None), None)
        if optimizer is None:
            optimizer = torch.optim.AdamW(groups, fused=True, **options)
        rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule.factor(step, total))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": rates, "interval": "step"}}

    @contextmanager
    def _at_start(self) -> Iterator[None]:
        """The network with the weights its stage starts from: Lightning restores a checkpoint's before it asks for optimizers."""
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
        if isinstance(optimizer, ClipsGradients):
            return  # it clips within its step
        # Lightning refuses to clip for a fused optimizer, for fear of a gradient scaler; bf16 needs none
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        norm = torch.nn.utils.get_total_norm(gradients)
        # what is not too long need not be written again; to know that waits for a device, and costs a processor nothing
        if norm.is_cuda or float(norm) > self.stage.optimizer.clip:
            torch.nn.utils.clip_grads_with_norm_(parameters, self.stage.optimizer.clip, norm)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["metrics"] = self.metrics.pending()
        checkpoint["memory"] = group.everyones(self._memory) if self._remembers else []

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.batches.start = checkpoint["global_step"]
        self.metrics.rewind(checkpoint["metrics"])
        if len(checkpoint["memory"]) == self.cut.ranks:
            self._memory = checkpoint["memory"][self.cut.rank]

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        # made on the CPU: where it stays there, Lightning's walk through it would find nothing to move
        return batch if device.type == "cpu" else super().transfer_batch_to_device(batch, device, dataloader_idx)

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        # a step's random numbers are a function of the step, so that none need be remembered and nothing before can move them
        number = self.cut.rank * self.cut.accumulated + batch_idx % self.cut.accumulated
        seeds = np.random.SeedSequence([self.batches.seed, 5, self.global_step, number])
        seed_generators(int(seeds.generate_state(1, np.uint64)[0] >> 1), self.device)
        if not self._in_turns:
            return
        progress = Progress(self.global_step, len(self.batches), self.batches.steps_per_epoch)
        for one in self._groups:
            trains = all(strategy.trains(one, progress) for strategy in self.stage.strategy)
            for _, parameter in one.parameters:
                parameter.requires_grad_(trains)


def seed_generators(number: int, device: torch.device) -> None:
    """Seed the generators of this process' CPU and of `device`.

    torch.manual_seed leaves word for each kind of device that is not there, too, with the call stack of whoever asked: 0.4 ms.
    """
    torch.default_generator.manual_seed(number)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(number)
