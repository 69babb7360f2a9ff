"""Every optimizer in the loop, resumed; and what replaces it. On several ranks: test_ranks_of_optimizers.py."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.parts.accelerators import installed_accelerators
from pipelines.parts.optimizers import Optimizer
from pipelines.training.assembly.optimizer import create_optimizer
from pipelines.training.loop.clipping import clip_gradients
from pipelines.training.ranks.run import run
from tests.pipelines.training.optimizer_jobs import DENSE, SPARSE, WORD_VECTORS, MakeJob, optimizer_job
from tests.pipelines.training.small_recipe import GENERAL
from tests.pipelines.training.test_ranks import lines
from tests.pipelines.training.test_resume_of_shapes import interrupted


@pytest.fixture(scope="module")
def job(tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory) -> MakeJob:
    return partial(optimizer_job, tables, sources, tmp_path_factory)


@pytest.mark.parametrize("name", [*DENSE, *SPARSE])
def test_a_resumed_run_ends_in_the_same_weights(name: str, job: MakeJob, tmp_path: Path) -> None:
    named, recipe = (DENSE[name], GENERAL) if name in DENSE else (SPARSE[name], WORD_VECTORS)
    whole, resumed = job(named, tmp_path / "whole", recipe), job(named, tmp_path / "resumed", recipe)
    run(whole)
    interrupted(resumed, 7)
    assert run(resumed).resumed_from_step == 4
    for file in ("model.safetensors", METRICS):
        assert (resumed.out / file).read_bytes() == (whole.out / file).read_bytes()
    curve = [line["train/loss"] for line in lines(whole.out)]
    assert curve[-1] < curve[0], "nothing was learned"


def test_the_loss_of_sparse_steps_is_that_of_dense_ones(job: MakeJob, tmp_path: Path) -> None:
    """Clipping included, which at 0.05 changes every step."""
    curves = []
    for sparse in (False, True):
        made = job({"name": "adagrad", "lr": 0.05, "sparse": sparse}, tmp_path / str(sparse), WORD_VECTORS)
        run(made)
        curves.append(lines(made.out))
    for mine, theirs in zip(*curves, strict=True):
        assert theirs == pytest.approx(mine, rel=1e-5)


def test_accelerators_replace_adamw_only() -> None:
    network = nn.Linear(4, 4)
    for name in Optimizer.members:
        chosen = Optimizer.model_validate(name)
        if chosen.sparse_gradients:
            continue
        groups = [{"params": list(network.parameters()), "lr": chosen.lr, "weight_decay": 0.0}]
        made = create_optimizer(chosen, groups, network, installed_accelerators(), 1)
        assert isinstance(made, torch.optim.AdamW) == (chosen.adamw_options() is not None), name


def test_a_dense_parameter_is_refused_where_only_rows_train() -> None:
    network = nn.Sequential(nn.Embedding(4, 2), nn.Linear(2, 2))
    groups = [{"params": list(network.parameters()), "lr": 0.1, "weight_decay": 0.0}]
    with pytest.raises(RecipeError, match=r"sparse_adam: 1\.weight is no embedding table.*use adamw"):
        create_optimizer(Optimizer.model_validate("sparse_adam"), groups, network, (), 1)


@pytest.mark.parametrize("limit", [0.5, None])
def test_sparse_gradients_are_clipped_by_the_norm_of_their_sums(limit: float | None) -> None:
    norms = []
    for sparse in (False, True):
        torch.manual_seed(0)
        table = nn.Embedding(6, 3, sparse=sparse)
        optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
        table(torch.tensor([1, 1, 4])).square().sum().backward()
        clip_gradients(optimizer, limit)
        assert table.weight.grad is not None
        norms.append(table.weight.grad.to_dense())
    torch.testing.assert_close(*norms)
    assert (float(norms[0].norm()) < 0.51) == (limit is not None)
