"""Embeddings whose gradient is of rows, beside torch's own; and an optimizer that reads no more than these."""

from __future__ import annotations

import copy
import gc
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from pipelines.parts.accelerators.cpu_kernels.compiled_adamw import CompiledAdamW
from pipelines.parts.accelerators.cpu_kernels.embedding import KernelEmbedding, summed_rows
from pipelines.parts.accelerators.cpu_kernels.library import close_library
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close

HEIGHT = 200
OPTIONS: dict[str, Any] = {"lr": 1e-2, "betas": (0.9, 0.98), "eps": 1e-6, "weight_decay": 0.1}


class Words(nn.Module):
    """Words that are looked up, and scored by the same table where it is `tied`."""

    def __init__(self, kind: type[nn.Embedding], width: int, tied: bool, padding: int | None = None) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words, self.tied = kind(HEIGHT, width, padding_idx=padding), tied
        self.layer = nn.Linear(width, width)

    def forward(self, ids: Tensor) -> Tensor:
        states = self.layer(self.words(ids)).tanh()
        scores = functional.linear(states, self.words.weight) if self.tied else states
        return scores.square().mean()


def made(kind: type[nn.Embedding], rows: bool, width: int = 16, **options: Any) -> tuple[Words, CompiledAdamW]:
    network = Words(kind, width, **options)
    groups = [{"params": list(network.parameters())}]
    return network, CompiledAdamW(groups, clip=0.01, sparse_rows=rows, **OPTIONS)


def texts(step: int) -> list[Tensor]:
    """Two pieces of a batch, over few of the words, and more of them later."""
    draw_dropout = torch.Generator().manual_seed(step)
    return [torch.randint(0, 10 + 5 * step, (3, 7), generator=draw_dropout) for _ in range(2)]


def train(network: Words, optimizer: CompiledAdamW, begin: int, end: int, pieces: int = 1) -> None:
    for step in range(begin, end):
        optimizer.zero_grad()
        for ids in texts(step)[:pieces]:
            network(ids).backward()
        optimizer.step()


def gradient(network: Words, optimizer: CompiledAdamW) -> Tensor:
    """That of the words, whole."""
    weight = network.words.weight
    parts = [weight.grad, *(one.grad for key, one in optimizer._row_leaves.items() if key is weight)]
    return sum((one.to_dense() for one in parts if one is not None), torch.zeros_like(weight))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("padding", [None, 3])
@pytest.mark.parametrize("pieces", [1, 2])
def test_its_gradient_is_torchs(tied: bool, padding: int | None, pieces: int) -> None:
    plain, _ = made(nn.Embedding, False, tied=tied, padding=padding)
    ours, optimizer = made(KernelEmbedding, True, tied=tied, padding=padding)
    for network in (plain, ours):
        for ids in texts(1)[:pieces]:
            network(ids).backward()
    rows = optimizer._row_leaves[ours.words.weight].grad
    assert rows is not None and rows.is_sparse
    assert (ours.words.weight.grad is None) is not tied
    close(gradient(ours, optimizer), plain.words.weight.grad, torch.float32)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("width", [16, 33])
def test_rows_that_rest_have_the_bits_of_those_that_move(tied: bool, pieces: int, width: int) -> None:
    """Nothing differs but how a gradient comes: in rows, or with zeros in all others."""
    ours, in_rows = made(KernelEmbedding, True, width, tied=tied)
    beside, dense = made(KernelEmbedding, False, width, tied=tied)
    in_rows.clip = dense.clip = math.inf  # a norm is of other sums
    for step in range(12):
        in_rows.zero_grad()
        for ids in texts(step)[:pieces]:
            ours(ids).backward()
        for one, other in zip(ours.parameters(), beside.parameters(), strict=True):
            other.grad = None if one.grad is None else one.grad.clone()
        beside.words.weight.grad = gradient(ours, in_rows)
        in_rows.step()
        dense.step()
    for one, other in zip(ours.parameters(), beside.parameters(), strict=True):
        assert torch.equal(one, other)
        assert all(torch.equal(value, dense.state[other][name]) for name, value in in_rows.state[one].items())
    unseen = ~in_rows.state[ours.words.weight]["exp_avg"].view(torch.int32).any(1)
    assert int(unseen.sum()) == 0 if tied else 50 < int(unseen.sum()) < HEIGHT


def test_rows_are_clipped_with_all_else() -> None:
    found = []
    for rows in (True, False):
        network, optimizer = made(KernelEmbedding, rows, tied=False)
        train(network, optimizer, 0, 12)
        found.append(network)
    for one, other in zip(found[0].parameters(), found[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_a_checkpoint_goes_on_with_the_same_bits() -> None:
    through, optimizer = made(KernelEmbedding, True, tied=False)
    train(through, optimizer, 0, 6)
    resumed, again = made(KernelEmbedding, True, tied=False)
    resumed.load_state_dict(through.state_dict())
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(through, optimizer, 6, 12)
    train(resumed, again, 6, 12)
    assert all(torch.equal(one, other) for one, other in zip(through.parameters(), resumed.parameters(), strict=True))


@pytest.mark.parametrize("begin", [0, 3])
@pytest.mark.parametrize("clip", [math.inf, 0.01])
def test_look_ups_of_nothing_but_padding_decay_the_table(begin: int, clip: float) -> None:
    """A gradient of no rows, in the first step or once some rows have moments."""
    found = []
    for rows in (True, False):
        network, optimizer = made(KernelEmbedding, rows, tied=False, padding=0)
        optimizer.clip = clip
        train(network, optimizer, 0, begin)
        optimizer.zero_grad()
        network(torch.zeros(3, 7, dtype=torch.int64)).backward()
        leaf = optimizer._row_leaves.get(network.words.weight)
        assert not rows or (leaf is not None and leaf.grad is not None and leaf.grad._nnz() == 0)
        optimizer.step()
        train(network, optimizer, begin, begin + 3)
        found.append(network)
    for one, other in zip(found[0].parameters(), found[1].parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_a_table_may_train_by_turns() -> None:
    network, optimizer = made(KernelEmbedding, True, tied=False)
    train(network, optimizer, 0, 2)
    network.words.weight.requires_grad_(False)
    before = network.words.weight.detach().clone()
    train(network, optimizer, 2, 4)
    assert torch.equal(network.words.weight, before)
    network.words.weight.requires_grad_(True)
    train(network, optimizer, 4, 5)
    assert not torch.equal(network.words.weight, before)


def test_a_step_taken_twice_reads_the_same_gradient() -> None:
    network, optimizer = made(KernelEmbedding, True, tied=True)
    network(texts(0)[0]).backward()
    whole = gradient(network, optimizer)
    optimizer.step()
    close(gradient(network, optimizer), whole, torch.float32)
    optimizer.step()
    close(gradient(network, optimizer), whole, torch.float32)


def test_without_a_gradient_or_the_kernels_it_is_torchs() -> None:
    network, _held = made(KernelEmbedding, True, tied=False)
    with torch.no_grad():
        assert not network.words(texts(0)[0]).requires_grad
    close_library()
    network(texts(0)[0]).backward()
    assert network.words.weight.grad is not None and not network.words.weight.grad.is_sparse


def test_a_table_gets_all_its_gradient_once_its_optimizer_is_gone() -> None:
    network, optimizer = made(KernelEmbedding, True, tied=False)
    del optimizer
    gc.collect()
    network(texts(0)[0]).backward()
    assert network.words.weight.grad is not None


def test_a_copy_sends_its_gradient_to_itself() -> None:
    network, optimizer = made(KernelEmbedding, True, tied=False)
    other = copy.deepcopy(network)
    other(texts(0)[0]).backward()
    assert other.words.weight.grad is not None
    assert optimizer._row_leaves[network.words.weight].grad is None


def test_rows_of_nothing_and_of_everything() -> None:
    values = torch.randn(6, 5)
    none = summed_rows(torch.empty(0, dtype=torch.int64), values[:0], 9)
    assert none.shape == (9, 5) and none._nnz() == 0 and none.is_coalesced()
    only = summed_rows(torch.full((6,), 4), values, 9)
    close(only.to_dense()[4], values.sum(0), torch.float32)
    assert summed_rows(torch.full((6,), 4), values, 9, skipped=4)._nnz() == 0
    each = summed_rows(torch.tensor([8, 0, 3, 8, 1, 0]), values, 9, skipped=3)
    assert each._indices()[0].tolist() == [0, 1, 8]
    close(
        each.to_dense(),
        torch.zeros(9, 5).index_add_(0, torch.tensor([8, 0, 8, 1, 0]), values[[0, 1, 3, 4, 5]]),
        torch.float32,
    )
