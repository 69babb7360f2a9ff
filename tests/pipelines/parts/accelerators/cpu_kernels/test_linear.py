"""Linear layers beside torch's own under autocast, alone and together."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from pipelines.parts.accelerators.cpu_kernels.linear import KernelLinear, share_input
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close


@pytest.mark.parametrize("biased", [True, False])
def test_linear(biased: bool) -> None:
    """As autocast computes it, but that a bias's gradient is summed in float32."""
    torch.manual_seed(8)
    ours, theirs = KernelLinear(24, 70, bias=biased), nn.Linear(24, 70, bias=biased)
    theirs.load_state_dict(ours.state_dict())
    one, other = (torch.randn(4, 9, 24, generator=torch.Generator().manual_seed(1)).requires_grad_() for _ in range(2))
    outer = torch.randn(4, 9, 70).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        said, wanted = ours(one), theirs(other)
    assert torch.equal(said, wanted)
    said.backward(outer)
    wanted.backward(outer)
    assert torch.equal(one.grad, other.grad)  # type: ignore[arg-type]
    assert torch.equal(ours.weight.grad, theirs.weight.grad)  # type: ignore[arg-type]
    if biased:
        close(ours.bias.grad, outer.double().sum((0, 1)), torch.float32, more=10)


def test_layers_of_one_input_say_what_each_would() -> None:
    torch.manual_seed(9)
    layers = [KernelLinear(16, size) for size in (16, 8, 8)]
    alone = [nn.Linear(16, size) for size in (16, 8, 8)]
    for one, other in zip(layers, alone, strict=True):
        other.load_state_dict(one.state_dict())
    share_input(layers)
    states = torch.randn(5, 16)
    for _ in range(2):  # the second time with what the first has left
        read, beside = states.clone().requires_grad_(), states.clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            said = [layer(read) for layer in layers]
            wanted = [layer(beside) for layer in alone]
        for one, other in zip(said, wanted, strict=True):
            assert torch.equal(one, other)
        sum(one.float().square().sum() for one in said).backward()  # type: ignore[union-attr]
        sum(one.float().square().sum() for one in wanted).backward()  # type: ignore[union-attr]
        close(read.grad, beside.grad, torch.bfloat16, more=4)
        for one, other in zip(layers, alone, strict=True):
            close(one.weight.grad, other.weight.grad, torch.bfloat16, more=2)


def test_layers_of_one_input_may_be_given_others() -> None:
    """As in attention to another text: the query reads one, key and value read the other."""
    torch.manual_seed(10)
    query, key = KernelLinear(6, 6), KernelLinear(6, 6)
    share_input([query, key])
    mine, theirs = torch.randn(3, 6), torch.randn(4, 6)
    with torch.autocast("cpu", torch.bfloat16):
        first, second = query(mine), key(theirs)
        again = query(mine)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(first, functional.linear(mine, query.weight, query.bias))
        assert torch.equal(second, functional.linear(theirs, key.weight, key.bias))
    assert torch.equal(again, first)
