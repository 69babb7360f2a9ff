"""Every optimizer in the loop: resumed, on several ranks, with sharded weights; and what replaces it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.parts.accelerators import installed_accelerators
from pipelines.parts.optimizers import Optimizer
from pipelines.recipe.job import Job, Runtime
from pipelines.training.assembly.optimizer import create_optimizer
from pipelines.training.loop.clipping import clip_gradients
from pipelines.training.ranks.run import run
from tasks.launchers import LauncherSession
from tasks.launchers.local import LocalLauncher
from tests.pipelines.training.small_recipe import GENERAL
from tests.pipelines.training.test_ranks import Killer, Silent, lines
from tests.pipelines.training.test_resume_of_shapes import interrupted
from tests.steps import ROOT, job_of, library_of, plan_of

DENSE: dict[str, dict[str, Any]] = {
    "adafactor": {"name": "adafactor", "weight_decay": 0.01},
    "lamb": {"name": "lamb", "lr": 5e-3},
    "sgd": {"name": "sgd", "lr": 0.1, "momentum": 0.9},
    "adagrad": {"name": "adagrad", "lr": 1e-2},
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


@pytest.fixture(scope="module")
def job(tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory) -> MakeJob:
    """`job(named, out, recipe)`: a stage of a few steps with the optimizer that a recipe names so."""

    def made(named: dict[str, Any], out: Path, recipe: str = GENERAL, **runtime: Any) -> Job:
        library = library_of(tmp_path_factory.mktemp("recipes"), small=recipe)
        (step,) = plan_of(library, "small", sources).steps
        found = job_of(step, {}, tables, out, Runtime(**{"log_every": 3, "checkpoint_every": 4} | runtime))
        common = {"precision": "32-true", "clip": found.stage.optimizer.clip}
        changes = {
            "optimizer": Optimizer.model_validate({**common, **named}),
            "dropout": 0.0,
            "budget": found.stage.budget.model_copy(update={"tokens": STEPS * found.stage.budget.batch_tokens}),
        }
        return found.model_copy(update={"stage": found.stage.model_copy(update=changes)})

    return made


@pytest.fixture(scope="module")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LauncherSession]:
    with LocalLauncher(restarts=1).open(ROOT, tmp_path_factory.mktemp("launcher") / "log") as launching:
        yield launching


@pytest.mark.parametrize("name", [*DENSE, "sparse_adam", "adagrad of words", "sgd of words"])
def test_a_resumed_run_ends_in_the_same_weights(name: str, job: MakeJob, tmp_path: Path) -> None:
    named, recipe = DENSE.get(name), GENERAL
    if named is None:
        recipe, named = WORD_VECTORS, {"name": name.split()[0], "lr": 0.05}
        if name != "sparse_adam":
            named["sparse"] = True
    whole, resumed = job(named, tmp_path / "whole", recipe), job(named, tmp_path / "resumed", recipe)
    run(whole)
    interrupted(resumed, 7)
    assert run(resumed).resumed_from_step == 4
    for file in ("model.safetensors", METRICS):
        assert (resumed.out / file).read_bytes() == (whole.out / file).read_bytes()
    curve = [line["train/loss"] for line in lines(whole.out)]
    assert curve[-1] < curve[0], "nothing was learned"


@pytest.mark.parametrize("name", DENSE)
def test_ranks_agree_and_sharded_weights_resume(
    name: str, job: MakeJob, launcher: LauncherSession, tmp_path: Path
) -> None:
    folders = {}
    for run_name, runtime in {
        "one": {},
        "ddp": {"devices": 2},
        "fsdp": {"devices": 2, "distribution": "fsdp"},
        "killed": {"devices": 2, "distribution": "fsdp"},
    }.items():
        made = job(DENSE[name], tmp_path / run_name, **runtime)
        launcher.run(made, heard := Killer(once=True) if run_name == "killed" else Silent())
        assert not isinstance(heard, Killer) or heard.killed
        folders[run_name] = made.out
    for other in ("ddp", "fsdp"):
        for mine, theirs in zip(lines(folders["one"]), lines(folders[other]), strict=True):
            assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-5)
    one, fsdp, killed = (load_file(folders[each] / "model.safetensors") for each in ("one", "fsdp", "killed"))
    for key, value in one.items():
        torch.testing.assert_close(fsdp[key], value, rtol=1e-3, atol=1e-4)
        assert torch.equal(fsdp[key], killed[key]), key


def test_sparse_gradients_are_refused_on_several_ranks(job: MakeJob, launcher: LauncherSession, tmp_path: Path) -> None:
    made = job({"name": "sparse_adam"}, tmp_path / "out", WORD_VECTORS, devices=2)
    with pytest.raises(RecipeError, match=r"sparse_adam: ranks do not exchange sparse gradients; set training.devices"):
        launcher.run(made, Silent())


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
