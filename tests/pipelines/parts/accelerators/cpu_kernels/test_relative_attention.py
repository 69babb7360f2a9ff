"""XLNet's relative attention with one pass over its scores beside transformers' own, and beside float64."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor
from transformers import XLNetConfig
from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

from pipelines.parts.accelerators.cpu_kernels import relative_attention
from pipelines.parts.accelerators.cpu_kernels.swapping import KERNEL_MODULES, with_block
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close
from tests.pipelines.parts.accelerators.cpu_kernels.graph import functions

BATCH, LENGTH, PAST, WIDTH = 2, 20, 6, 48


def module(rate: float = 0.0) -> XLNetRelativeAttention:
    torch.manual_seed(1)
    made = XLNetRelativeAttention(XLNetConfig(d_model=WIDTH, n_head=3, d_inner=96, dropout=rate)).train()
    for weight in made.parameters():
        torch.nn.init.normal_(weight, std=0.15)
    for child in made.modules():
        child.__class__ = with_block(KERNEL_MODULES.get(type(child), type(child)))
    return made


def inputs(kind: torch.dtype, segments: bool, past: bool) -> dict[str, Tensor | None]:
    draw_dropout = torch.Generator().manual_seed(2)
    keys = LENGTH + (PAST if past else 0)

    def states(*shape: int) -> Tensor:
        return torch.randn(*shape, WIDTH, generator=draw_dropout).bfloat16().to(kind).requires_grad_()

    mask = (torch.rand(LENGTH, keys, BATCH, 1, generator=draw_dropout) < 0.3).to(
        torch.float64 if kind is torch.float64 else torch.float32
    )
    mask[3] = 1  # one that sees nothing sees all alike
    of_segment = torch.randint(0, 2, (LENGTH, keys, BATCH), generator=draw_dropout)
    return {
        "h": states(LENGTH, BATCH), "g": states(LENGTH, BATCH), "attn_mask_h": mask, "attn_mask_g": mask.roll(1, 1),
        "r": states(LENGTH + keys, BATCH), "mems": states(PAST, BATCH) if past else None,
        "seg_mat": torch.nn.functional.one_hot(of_segment, 2).to(mask.dtype) if segments else None,
    }  # fmt: skip


def learnt(made: XLNetRelativeAttention, given: dict[str, Tensor | None], narrow: bool = True) -> list[Tensor]:
    """What both streams say, and the gradients of states and weights."""
    torch.manual_seed(3)
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        said = made(**given)[:2]
    outer = [torch.linspace(-1, 1, one.numel(), dtype=torch.float64).view(one.shape).sin() for one in said]
    loss = sum((one.double() * slope).sum() for one, slope in zip(said, outer, strict=True))
    read = [one for one in given.values() if one is not None and one.requires_grad]
    return [*(one.detach() for one in said), *torch.autograd.grad(loss, [*read, *made.parameters()], allow_unused=True)]


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("past", [False, True])
def test_it_is_as_near_to_float64_as_transformers_own(
    segments: bool, past: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = module()
    exact = learnt(copy.deepcopy(made).double(), inputs(torch.float64, segments, past), narrow=False)
    ours = learnt(made, inputs(torch.float32, segments, past))
    monkeypatch.setattr(relative_attention, "trains_in_bfloat16", lambda *_: False)
    usual = learnt(made, inputs(torch.float32, segments, past))
    largest = max(float(one.double().norm()) for one in exact if one is not None)
    for right, one, other in zip(exact, ours, usual, strict=True):
        assert (one is None) is (other is None) is (right is None)
        if right is None:
            continue
        assert one.shape == right.shape and one.dtype is other.dtype
        errors = [float((found.double() - right).norm()) for found in (one, other)]
        assert errors[0] <= 1.5 * errors[1] + 1e-3 * largest


def test_dropout_is_a_function_of_the_seed() -> None:
    made = module(0.3)
    ours = learnt(made, inputs(torch.float32, True, False))
    again = learnt(made, inputs(torch.float32, True, False))
    assert all(torch.equal(one, other) for one, other in zip(ours, again, strict=True))
    without = copy.deepcopy(made)
    without.dropout.p = 0.0
    assert not torch.equal(learnt(without, inputs(torch.float32, True, False))[0], ours[0])


def test_whoever_wants_the_weights_gets_them() -> None:
    made, given = module(), inputs(torch.float32, True, False)
    with torch.autocast("cpu", torch.bfloat16):
        said = made(**given, output_attentions=True)
        plain = made(**given)
    assert len(said) == 3 and said[2][0].shape == (LENGTH, LENGTH, BATCH, 3)
    close(said[0], plain[0], torch.bfloat16, more=4)
    assert "SoftmaxFunctionBackward" in functions(plain[0]) and "SoftmaxFunctionBackward" not in functions(said[0])
