"""The compiled AdamW beside torch's own: its numbers, its state, its clipping, and the rows it lets rest."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.compiled_adamw import CompiledAdamW
from pipelines.parts.accelerators.cpu_kernels.library import close_library
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close

OPTIONS: dict[str, Any] = {"betas": (0.9, 0.98), "eps": 1e-6}
SHAPES = ((300, 33), (7,), (1,), (129, 257), (2, 16))
Optimizer = torch.optim.Optimizer


def weights(kind: torch.dtype = torch.float32) -> list[nn.Parameter]:
    made = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=made).to(kind)) for shape in SHAPES]


def groups(parameters: Sequence[nn.Parameter]) -> list[dict[str, Any]]:
    return [
        {"params": list(parameters[:2]), "lr": 1e-2, "weight_decay": 0.1},
        {"params": list(parameters[2:]), "lr": 3e-3, "weight_decay": 0.0},
    ]


def gradients(step: int, scale: float = 1.0) -> list[Tensor]:
    made = torch.Generator().manual_seed(step)
    return [scale * torch.randn(shape, generator=made) for shape in SHAPES]


def run(optimizer: Optimizer, parameters: Sequence[nn.Parameter], begin: int, end: int, clip: float = math.inf) -> None:
    """Steps at a rate that falls; `clip` where the optimizer does not do it itself."""
    for step in range(begin, end):
        for group, peak in zip(optimizer.param_groups, (1e-2, 3e-3), strict=True):
            group["lr"] = peak * (1 - step / 100)
        for one, gradient in zip(parameters, gradients(step, 0.01 if step % 3 else 1.0), strict=True):
            one.grad = gradient.to(one.dtype)
        if clip < math.inf:
            torch.nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()


@pytest.mark.parametrize("clip", [math.inf, 1.0])
def test_it_is_adamw(clip: float) -> None:
    exact, plain, mine = weights(torch.float64), weights(), weights()
    ours = CompiledAdamW(groups(mine), clip=clip, **OPTIONS)
    run(torch.optim.AdamW(groups(exact), **OPTIONS), exact, 0, 60, clip)
    run(torch.optim.AdamW(groups(plain), fused=True, **OPTIONS), plain, 0, 60, clip)
    run(ours, mine, 0, 60)
    for right, usual, got in zip(exact, plain, mine, strict=True):
        close(got, right, torch.float32, more=4)
        error = (got.double() - right).norm()
        assert error <= 2 * (usual.double() - right).norm() + 1e-6 * right.norm()
        assert float(ours.state[got]["step"]) == 60


def saved(optimizer: Optimizer) -> dict[str, Any]:
    """As a checkpoint gives it back."""
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    read: dict[str, Any] = torch.load(file, weights_only=True)
    return read


@pytest.mark.parametrize("ours_first", [True, False])
def test_a_checkpoint_of_either_is_one_of_the_other(ours_first: bool) -> None:
    def made(ours: bool, parameters: list[nn.Parameter]) -> Optimizer:
        if ours:
            return CompiledAdamW(groups(parameters), **OPTIONS)
        return torch.optim.AdamW(groups(parameters), fused=True, **OPTIONS)

    through, resumed = weights(), weights()
    run(made(not ours_first, through), through, 0, 20)
    first = made(ours_first, resumed)
    run(first, resumed, 0, 10)
    then = made(not ours_first, resumed)
    state = saved(first)
    usual = torch.optim.AdamW(groups(weights()), fused=True, **OPTIONS).state_dict()
    assert state["param_groups"][0].keys() == usual["param_groups"][0].keys()
    assert state["state"][0].keys() == {"step", "exp_avg", "exp_avg_sq"}
    then.load_state_dict(state)
    run(then, resumed, 10, 20)
    for one, other in zip(through, resumed, strict=True):
        close(one, other, torch.float32, more=4)


def test_a_checkpoint_of_its_own_goes_on_with_the_same_bits() -> None:
    through, resumed = weights(), weights()
    run(CompiledAdamW(groups(through), clip=1.0, **OPTIONS), through, 0, 20)
    first = CompiledAdamW(groups(resumed), clip=1.0, **OPTIONS)
    run(first, resumed, 0, 10)
    state = saved(first)
    run(first, resumed, 10, 13)  # what is not in the checkpoint is forgotten
    again = weights()
    half = CompiledAdamW(groups(again), clip=1.0, **OPTIONS)
    run(half, again, 0, 10)
    half.load_state_dict(state)
    run(half, again, 10, 20)
    assert all(torch.equal(one, other) for one, other in zip(through, again, strict=True))


def test_any_number_of_threads_computes_the_same() -> None:
    usual, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            parameters = weights()
            run(CompiledAdamW(groups(parameters), clip=0.5, **OPTIONS), parameters, 0, 5)
            found.append(parameters)
    finally:
        torch.set_num_threads(usual)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_seen_as_torch_sees_it(wrong: float) -> None:
    """A gradient that is none makes weights that are none, and an infinite one leaves 0 of the others: the next loss
    tells."""
    plain, mine = weights(), weights()
    theirs, ours = (
        torch.optim.AdamW(groups(plain), fused=True, **OPTIONS),
        CompiledAdamW(groups(mine), clip=1.0, **OPTIONS),
    )
    for parameters in (plain, mine):
        for one, gradient in zip(parameters, gradients(0), strict=True):
            one.grad = gradient
        parameters[3].grad[100, 3] = wrong  # type: ignore[index]  # it has just been set
    norm = torch.nn.utils.get_total_norm([one.grad for one in plain if one.grad is not None])
    if float(norm) > 1.0:  # as a stage clips for an optimizer that does not
        torch.nn.utils.clip_grads_with_norm_(plain, 1.0, norm)
    theirs.step()
    ours.step()
    assert not mine[3].isfinite().all()
    for one, other in zip(plain, mine, strict=True):
        torch.testing.assert_close(one, other, equal_nan=True)


def test_what_has_no_gradient_stands_still() -> None:
    parameters = weights()
    optimizer = CompiledAdamW(groups(parameters), **OPTIONS)
    optimizer.step()
    run(optimizer, parameters, 0, 3)
    before = copy.deepcopy(parameters)
    for one, gradient in zip(parameters, gradients(3), strict=True):
        one.grad = gradient
    parameters[1].grad = None
    optimizer.step()
    assert torch.equal(parameters[1], before[1]) and float(optimizer.state[parameters[1]]["step"]) == 3
    assert not torch.equal(parameters[0], before[0]) and float(optimizer.state[parameters[0]]["step"]) == 4
    parameters[1].grad = gradients(4)[1]
    optimizer.zero_grad()
    assert all(one.grad is None for one in parameters)


def test_heads_that_take_turns_keep_a_table_each() -> None:
    plain, mine = weights(), weights()
    usual, ours = torch.optim.AdamW(groups(plain), **OPTIONS), CompiledAdamW(groups(mine), **OPTIONS)
    made = set()
    for step in range(6):
        for parameters, optimizer in ((plain, usual), (mine, ours)):
            for number, (one, gradient) in enumerate(zip(parameters, gradients(step), strict=True)):
                one.grad = None if number in (1, 4) and (number == 1) == (step % 2 == 0) else gradient
            optimizer.step()
        made |= {id(table) for table in ours._tables.values()}
    assert len(ours._tables) == len(made) == 2, "the backbone with each head, built once"
    for one, other in zip(plain, mine, strict=True):
        torch.testing.assert_close(one, other)
        assert usual.state[one]["step"] == ours.state[other]["step"]


def test_it_computes_what_the_kernels_can_compute() -> None:
    assert CompiledAdamW.supports(weights())
    assert not CompiledAdamW.supports([*weights(), nn.Parameter(torch.ones(3, dtype=torch.float64))])
    assert not CompiledAdamW.supports([nn.Parameter(torch.ones(3, device="meta"))])
    assert not CompiledAdamW.supports([nn.Parameter(torch.ones(3, 4).t())])
    close_library()
    assert not CompiledAdamW.supports(weights())
