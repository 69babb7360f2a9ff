"""The one LightningModule: whatever a recipe asks for, training is signals → objectives → weighted sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytorch_lightning as lightning
import torch
from torch import Tensor

from pipelines.evaluations.metrics import accuracy, macro_f1
from pipelines.objectives import Signals, TrainingStep
from pipelines.recipe.schema import Stage
from pipelines.training.reporting import MetricsLog
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.training.texts import TextBatches
    from pipelines.training.windows import PlainBatches

MONITOR = "validation/macro_f1"
"""What early stopping and the choice of the best weights look at."""


class StageModule(lightning.LightningModule):
    """A network, its frozen companions, and the stage's objectives."""

    def __init__(
        self,
        stage: Stage,
        network: PreTrainedModel,
        companions: dict[str, PreTrainedModel],
        batches: PlainBatches | TextBatches,
        log: MetricsLog,
    ) -> None:
        super().__init__()
        self.stage, self.network, self.batches, self.metrics = stage, network, batches, log
        # in a plain dict: a companion is no part of this module's weights, checkpoints or training mode
        self._companions = companions
        self._wanted = frozenset().union(*(objective.needs_signals for objective in stage.objective))
        self._heard: list[tuple[Tensor, Tensor, Tensor]] = []

    def on_fit_start(self) -> None:
        for companion in self._companions.values():
            companion.to(self.device)  # type: ignore[arg-type]  # transformers wraps `to` and loses its signature

    def training_step(self, batch: dict[str, Tensor], _: int) -> Tensor:
        assert self.stage.head is not None
        fields = {Field(name): value for name, value in batch.items()}
        signals = self.stage.head.signals(self.network, fields, self._wanted)
        step = TrainingStep(fields, signals, self.network, lambda name: self._ask(name, fields))
        terms: dict[str, Tensor] = {}
        total = torch.zeros((), device=self.device)
        for objective in self.stage.objective:
            for name, value in objective.loss(step).items():
                terms[name] = value
                total = total + objective.weight * value
        if not torch.isfinite(total):
            raise FloatingPointError(f"the loss of step {self.global_step + 1} is {float(total)}; lower optimizer.lr")
        at = self.global_step + 1
        rate = self.trainer.optimizers[0].param_groups[0]["lr"]
        self.metrics.train(at, {"loss": total, **terms}, rate, last=at == len(self.batches))
        return total

    @torch.no_grad()
    def _ask(self, name: str, fields: dict[Field, Tensor]) -> Signals:
        assert self.stage.head is not None
        return self.stage.head.signals(self._companions[name], fields, self._wanted)

    def validation_step(self, batch: dict[str, Tensor], _: int) -> None:
        assert self.stage.head is not None
        fields = {Field(name): value for name, value in batch.items()}
        logits = self.stage.head.signals(self.network, fields, frozenset({Signal.LOGITS}))[Signal.LOGITS]
        assert isinstance(logits, Tensor)
        labels = fields[Field.LABELS]
        loss = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none")
        self._heard.append((logits.argmax(-1).cpu(), labels.cpu(), loss.cpu()))

    def on_validation_epoch_end(self) -> None:
        predicted, labels, losses = (torch.cat(column).numpy() for column in zip(*self._heard, strict=True))
        self._heard.clear()
        values = {
            "validation/accuracy": round(float(accuracy(labels, predicted)), 6),
            MONITOR: round(float(macro_f1(labels, predicted)), 6),
            "validation/loss": round(float(losses.mean()), 6),
        }
        self.log(MONITOR, values[MONITOR], logger=False)
        self.metrics.write(self.global_step, values)

    def configure_optimizers(self) -> Any:
        assert self.stage.strategy is not None
        chosen, strategy, total = self.stage.optimizer, self.stage.strategy, len(self.batches)
        optimizer = torch.optim.AdamW(
            strategy.groups(self.network, chosen.lr, chosen.weight_decay), betas=chosen.betas, eps=1e-6, fused=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: strategy.factor(step, total))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        # Lightning refuses to clip for a fused optimizer, for fear of a gradient scaler; bf16 needs none
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.stage.optimizer.clip)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["random"] = torch.get_rng_state()
        checkpoint["metrics"] = self.metrics.pending

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.batches.start = checkpoint["global_step"]
        self.metrics.rewind(checkpoint["global_step"], checkpoint["metrics"])
        self._random: Tensor = checkpoint["random"]

    def on_train_batch_start(self, batch: Any, batch_idx: int) -> None:
        # restored here and not when the checkpoint is read: Lightning draws random numbers while it starts
        if hasattr(self, "_random"):
            torch.set_rng_state(self._random)
            del self._random
