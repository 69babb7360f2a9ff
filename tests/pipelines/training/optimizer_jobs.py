"""Stages of a few steps with any optimizer, for the tests of optimizers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.lineage.provenance import DataSource
from pipelines.parts.optimizers import Optimizer
from pipelines.recipe.job import Job, Runtime
from tests.pipelines.training.small_recipe import GENERAL
from tests.steps import job_of, library_of, plan_of

DENSE: dict[str, dict[str, Any]] = {
    "adafactor": {"name": "adafactor", "weight_decay": 0.01},
    "lamb": {"name": "lamb", "lr": 5e-3},
    "sgd": {"name": "sgd", "lr": 0.1, "momentum": 0.9},
    "adagrad": {"name": "adagrad", "lr": 1e-2},
}
SPARSE: dict[str, dict[str, Any]] = {
    "sparse_adam": {"name": "sparse_adam", "lr": 0.05},
    "adagrad of words": {"name": "adagrad", "lr": 0.05, "sparse": True},
    "sgd of words": {"name": "sgd", "lr": 50.0, "sparse": True},
}
STEPS = 12
WORD_VECTORS = """\
name: vectors
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: words, vocab_size: 512, min_count: 1}
    backbone: {name: word_vectors, hidden_size: 16}
    layout: {name: windows, framed: false}
    corruption: [{name: context_windows, threshold: 1.0e-3}, {name: negative_samples, samples: 5}]
    head: noise_prediction
    objective: negative_sampling
    strategy: full
    optimizer: {lr: 1.0e-2, weight_decay: 0, clip: 0.05, precision: 32-true}
    budget: {tokens: 6144, batch_tokens: 512, length: 32}
"""
MakeJob = Callable[..., Job]


def optimizer_job(
    tables: dict[str, Path],
    sources: dict[str, DataSource],
    factory: pytest.TempPathFactory,
    named: dict[str, Any],
    out: Path,
    recipe: str = GENERAL,
    **runtime: Any,
) -> Job:
    """A stage of a few steps with the optimizer that a recipe names so; writes into `out`."""
    library = library_of(factory.mktemp("recipes"), small=recipe)
    (step,) = plan_of(library, "small", sources).steps
    found = job_of(step, {}, tables, out, Runtime(**{"log_every": 3, "checkpoint_every": 4} | runtime))
    common = {"precision": "32-true", "clip": found.stage.optimizer.clip}
    changes = {
        "optimizer": Optimizer.model_validate({**common, **named}),
        "dropout": 0.0,
        "budget": found.stage.budget.model_copy(update={"tokens": STEPS * found.stage.budget.batch_tokens}),
    }
    return found.model_copy(update={"stage": found.stage.model_copy(update=changes)})
