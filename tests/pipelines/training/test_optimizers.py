"""Every optimizer in the loop: resumed, on several ranks, with sharded weights; and what replaces it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
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
from tasks.launchers.local import LocalLauncher
from tests.forked_ranks import ForkedSession
from tests.pipelines.training.small_recipe import GENERAL
from tests.pipelines.training.test_ranks import Silent, lines
from tests.pipelines.training.test_resume_of_shapes import interrupted
from tests.steps import ROOT, job_of, library_of, plan_of

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


@pytest.mark.parametrize("name", ["adafactor", "lamb"])
def test_two_ranks_have_the_losses_of_one(name: str, job: MakeJob, forked: ForkedSession, tmp_path: Path) -> None:
    curves = []
    for devices in (1, 2):
        made = job(DENSE[name], tmp_path / str(devices), devices=devices)
        forked.run(made, Silent())
        curves.append(lines(made.out))
    for mine, theirs in zip(*curves, strict=True):
        assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-5)


SHARDED = """
import copy, json, sys
import torch
from torch import distributed, nn
from torch.distributed.checkpoint.state_dict import get_optimizer_state_dict, set_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from pipelines.errors import RecipeError
from pipelines.parts.optimizers import Optimizer
from pipelines.training.assembly.optimizer import create_optimizer

def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 7), nn.LayerNorm(7), nn.Linear(7, 3, bias=False))

def optimizer(chosen, net):
    matrices, vectors = ([one for one in net.parameters() if (one.ndim > 1) is wide] for wide in (True, False))
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return chosen.create([{**group, "lr": chosen.lr, "is_head": True} for group in groups])

def train(net, rule, begin, end):
    for step in range(begin, end):
        rule.zero_grad()
        torch.manual_seed(step)
        net(torch.randn(8, 6)).square().mean().backward()
        rule.step()

def whole(net):
    return [one.detach().full_tensor() if hasattr(one, "full_tensor") else one.detach() for one in net.parameters()]

file, rank, named = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
mesh = init_device_mesh("cpu", (2,))
for name, keys in named.items():
    chosen = Optimizer.model_validate(keys)
    if not chosen.trains_sharded:
        sharded = network()
        fully_shard(sharded, mesh=mesh)
        groups = [{"params": list(sharded.parameters()), "lr": 0.1, "weight_decay": 0.0}]
        try:
            create_optimizer(chosen, groups, sharded, (), 2)
        except RecipeError as error:
            assert "set training.distribution: ddp" in str(error)
            print("refused", flush=True)
        continue
    alone = network()
    train(alone, optimizer(chosen, alone), 0, 6)
    sharded = network()
    fully_shard(sharded, mesh=mesh)
    rule = optimizer(chosen, sharded)
    train(sharded, rule, 0, 3)
    weights = {key: value.clone() for key, value in sharded.state_dict().items()}
    state = copy.deepcopy(get_optimizer_state_dict(sharded, rule))
    train(sharded, rule, 3, 6)
    for one, other in zip(whole(alone), whole(sharded), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-6)
    resumed = network()
    fully_shard(resumed, mesh=mesh)
    resumed.load_state_dict(weights)
    again = optimizer(chosen, resumed)
    set_optimizer_state_dict(resumed, again, state)
    train(resumed, again, 3, 6)
    for one, other in zip(whole(sharded), whole(resumed), strict=True):
        assert torch.equal(one, other), name
    print(name, flush=True)
distributed.destroy_process_group()
"""


def test_sharded_weights_take_the_steps_of_whole_ones_and_resume(tmp_path: Path) -> None:
    """Two ranks, as FSDP divides a network; the optimizer's state goes through what Lightning saves and loads."""
    command = [sys.executable, "-W", "ignore", "-c", SHARDED, str(tmp_path / "meeting")]
    ranks = [
        subprocess.Popen(
            [*command, str(rank), json.dumps(DENSE)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for rank in (0, 1)
    ]
    ended = [rank.communicate(timeout=300) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], ended[0][1][-2000:]
    assert ended[0][0].split() == ["refused" if name == "adafactor" else name for name in DENSE]


def test_sparse_gradients_are_refused_on_several_ranks(job: MakeJob, tmp_path: Path) -> None:
    """Once, although the launcher may start the ranks again."""
    made = job({"name": "sparse_adam"}, tmp_path / "out", WORD_VECTORS, devices=2)
    refused = r"sparse_adam: ranks do not exchange sparse gradients; set training.devices"
    with LocalLauncher(restarts=1).open(ROOT, tmp_path / "log") as launcher, pytest.raises(RecipeError, match=refused):
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
