"""Optimizers on several ranks, and with sharded weights."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from tasks.launchers.local import LocalLauncher
from tests.forked_ranks import ForkedSession
from tests.pipelines.training.optimizer_jobs import DENSE, WORD_VECTORS, MakeJob, optimizer_job
from tests.pipelines.training.test_ranks import Silent, lines
from tests.steps import ROOT


@pytest.fixture(scope="module")
def job(tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory) -> MakeJob:
    return partial(optimizer_job, tables, sources, tmp_path_factory)


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
