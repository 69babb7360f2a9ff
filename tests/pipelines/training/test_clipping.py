"""Gradients are clipped before the optimizer reads them, on plain torch and where the optimizer clips by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import pytorch_lightning as lightning
import torch

from pipelines.lineage.provenance import DataSource
from pipelines.parts.optimizers import ClipsGradients
from pipelines.recipe.job import Job
from pipelines.training.ranks.run import run
from tests.pipelines.training.small_recipe import GENERAL
from tests.steps import job_of, library_of, plan_of

STEPS = 4


def job(tables: dict[str, Path], sources: dict[str, DataSource], folder: Path, clip: float) -> Job:
    """A few steps of pre-training with gradients of at most `clip`."""
    (step,) = plan_of(library_of(folder, small=GENERAL), "small", sources).steps
    found = job_of(step, {}, tables, folder / "out")
    budget = found.stage.budget.model_copy(update={"tokens": STEPS * found.stage.budget.batch_tokens})
    optimizer = found.stage.optimizer.model_copy(update={"clip": clip})
    return found.model_copy(update={"stage": found.stage.model_copy(update={"budget": budget, "optimizer": optimizer})})


class Norms(lightning.Callback):
    """The global norm of the gradients at each step, as backward left them and as the optimizer read them."""

    def __init__(self) -> None:
        self.left, self.read = list[float](), list[float]()
        self.optimizers = set[type]()

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: torch.optim.Optimizer) -> None:
        self.optimizers.add(type(optimizer))
        self.left.append(norm_of(optimizer))

    def on_before_zero_grad(self, trainer: Any, pl_module: Any, optimizer: torch.optim.Optimizer) -> None:
        if len(self.read) < len(self.left):
            self.read.append(norm_of(optimizer))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if len(self.read) < len(self.left):
            self.read.append(norm_of(trainer.optimizers[0]))


def norm_of(optimizer: torch.optim.Optimizer) -> float:
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return float(torch.nn.utils.get_total_norm([one.grad for one in parameters if one.grad is not None]))


def measured(job: Job, patch: pytest.MonkeyPatch) -> Norms:
    """The norms of a job that plain torch computes."""
    norms, original = Norms(), lightning.Trainer.__init__

    def listening(self: lightning.Trainer, **options: Any) -> None:
        original(self, **{**options, "callbacks": [*options["callbacks"], norms]})

    patch.setattr(lightning.Trainer, "__init__", listening)
    patch.setattr("pipelines.training.loop.fit.installed_accelerators", lambda: ())  # as where none is installed
    run(job)
    assert norms.optimizers == {torch.optim.AdamW} and not issubclass(torch.optim.AdamW, ClipsGradients)
    assert len(norms.left) == len(norms.read) == STEPS
    return norms


def test_plain_torch_reads_gradients_of_the_norm_that_the_recipe_allows(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    norms = measured(job(tables, sources, tmp_path, 0.01), monkeypatch)
    assert min(norms.left) > 0.1, "every step must need to be clipped"
    assert norms.read == [pytest.approx(0.01, rel=1e-4)] * STEPS


def test_gradients_that_are_short_enough_stay_as_they_are(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    norms = measured(job(tables, sources, tmp_path, 1000.0), monkeypatch)
    assert norms.read == norms.left
