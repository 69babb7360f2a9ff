"""T5's blocks as single functions beside float64, forward and backward."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import T5Config
from transformers.models.t5.modeling_t5 import (
    T5DenseActDense,
    T5DenseGatedActDense,
    T5LayerCrossAttention,
    T5LayerFF,
    T5LayerNorm,
    T5LayerSelfAttention,
)

from pipelines.parts.accelerators.cpu_kernels import residual_stream
from pipelines.parts.accelerators.cpu_kernels.dropout import draw_dropout
from pipelines.parts.accelerators.cpu_kernels.feed_forward import FusedFeedForward
from pipelines.parts.accelerators.cpu_kernels.root_mean_square import normalised_with_residual
from pipelines.parts.accelerators.cpu_kernels.swapping import KERNEL_MODULES, with_block
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close, same_on_any_threads
from tests.pipelines.parts.accelerators.cpu_kernels.graph import functions
from tests.pipelines.parts.accelerators.cpu_kernels.test_blocks import exact, learnt_alike, said, twice


def made(kind: Callable[[T5Config], nn.Module] = T5DenseActDense, rate: float = 0.0, **settings: object) -> nn.Module:
    """A block of random weights, as a network has it that the kernels were given to."""
    torch.manual_seed(1)
    module = kind(T5Config(**{"d_model": 48, "d_ff": 84, "dropout_rate": rate, **settings})).train()
    return faster(module)


def faster(module: nn.Module) -> nn.Module:
    for weight in module.parameters():
        nn.init.normal_(weight, mean=1.0 if weight.dim() == 1 else 0.0, std=0.15)
    for child in module.modules():
        child.__class__ = with_block(KERNEL_MODULES.get(type(child), type(child)))
    return module


def states(*shape: int, kind: torch.dtype = torch.bfloat16) -> Tensor:
    return torch.randn(shape).to(kind).requires_grad_()


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (2, 64)])
def test_feed_forward(rate: float, kind: torch.dtype, shape: tuple[int, int]) -> None:
    module, given = made(rate=rate), states(*shape, 48, kind=kind)
    torch.manual_seed(5)
    ours = said(module, given)
    assert functions(ours) >= {"FeedForwardFunctionBackward"} and ours.dtype is torch.bfloat16
    outer = torch.randn(ours.shape).bfloat16()
    ours.backward(outer)
    weights = exact(module)
    one = given.detach().bfloat16().double().requires_grad_()
    inner = functional.linear(one, weights["wi.weight"]).relu()
    kept = mask_of(module, 5, shape)
    if kept.numel() > 1000:
        assert kept.mean().item() == pytest.approx(1 - rate, abs=0.03)
    wanted = functional.linear(inner * kept * draw_dropout(rate).scale, weights["wo.weight"])
    wanted.backward(outer.double())
    assert given.grad is not None and given.grad.dtype is kind
    close(ours, wanted, torch.bfloat16, more=2)
    close(given.grad, one.grad, torch.bfloat16, more=6)
    learnt_alike(module, weights)


def mask_of(module: nn.Module, seed: int, shape: tuple[int, int]) -> Tensor:
    """[..., 84]: what it keeps with a seed, as seen where all that it could drop is 1."""
    weights = {name: one.detach().clone() for name, one in module.named_parameters()}
    with torch.no_grad():
        module.wi.weight.zero_()[:, 0] = 1  # type: ignore[operator, union-attr]
    torch.manual_seed(seed)
    result = said(module, torch.ones(*shape, 48).requires_grad_())
    (inner,) = (one for one in result.grad_fn.saved_tensors if one.shape == (shape[0] * shape[1], 84))
    module.load_state_dict(weights)
    return (inner != 0).double().view(*shape, 84)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(1, 48), (3, 50, 48), (2, 7, 37)])
def test_root_mean_square(kind: torch.dtype, shape: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    module, given = faster(T5LayerNorm(shape[-1], eps=1e-6)), states(*shape, kind=kind)
    ours = said(module, given)
    assert functions(ours) >= {"RMSNormFunctionBackward"} and ours.dtype is torch.bfloat16
    outer = torch.randn(ours.shape).bfloat16()
    ours.backward(outer)
    (one,), weights = twice(given), exact(module)
    wanted = weights["weight"] * one * torch.rsqrt(one.square().mean(-1, keepdim=True) + 1e-6)
    wanted.backward(outer.double())
    close(ours, wanted, torch.bfloat16, more=2)
    close(given.grad, one.grad, kind, more=2)
    learnt_alike(module, weights, more=2)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
def test_what_something_is_added_to_is_summed_with_what_is_normalised(kind: torch.dtype) -> None:
    torch.manual_seed(1)
    module, given = faster(T5LayerNorm(37, eps=1e-6)), states(3, 50, 37, kind=kind)
    with torch.autocast("cpu", torch.bfloat16):
        said_of_it, stream = normalised_with_residual(module, given)
    assert torch.equal(stream, given) and stream.dtype is kind
    outer, more = torch.randn(3, 50, 37).bfloat16(), torch.randn(3, 50, 37).to(kind)
    (both,) = torch.autograd.grad([said_of_it, stream], given, [outer, more], retain_graph=True)
    (one,), weights = twice(given), exact(module)
    wanted = weights["weight"] * one * torch.rsqrt(one.square().mean(-1, keepdim=True) + 1e-6)
    close(both, torch.autograd.grad(wanted, one, outer.double())[0] + more.double(), kind, more=2)
    (alone,) = torch.autograd.grad(stream, given, more)
    assert torch.equal(alone, more)
    assert normalised_with_residual(nn.Identity(), given)[1] is given


SUB_LAYERS: dict[str, Callable[[T5Config], nn.Module]] = {
    "feed forward": T5LayerFF,
    "self-attention": lambda config: T5LayerSelfAttention(config, has_relative_attention_bias=True),
    "cross-attention": T5LayerCrossAttention,
}


@pytest.mark.parametrize("name", SUB_LAYERS)
@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
def test_a_sub_layer_says_what_its_modules_say(
    name: str, rate: float, kind: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same masks: one is drawn for each, in the same order."""
    module = made(SUB_LAYERS[name], rate=rate, d_kv=16, num_heads=3, attn_implementation="eager")
    given, read = states(3, 25, 48, kind=kind), states(3, 30, 48)
    outer = torch.randn(3, 25, 48).to(kind)
    inputs = [given, read] if name == "cross-attention" else [given]
    found = []
    for fused in (True, False):
        if not fused:
            monkeypatch.setattr(residual_stream, "trains_in_bfloat16", lambda *_: False)
        torch.manual_seed(7)
        result = said(module, *inputs)
        assert ("DropoutAddFunctionBackward" in functions(result)) is fused
        assert result.dtype is kind
        learnt = torch.autograd.grad(result, [*inputs, *module.parameters()], outer)
        found.append([result.detach(), *learnt])
    for one, other in zip(*found, strict=True):
        assert one.dtype is other.dtype
        close(one, other, torch.bfloat16, more=4)


def test_any_number_of_threads_says_the_same() -> None:
    def computed() -> list[Tensor]:
        torch.manual_seed(3)
        given, found = states(3, 50, 48), []
        for module in (made(rate=0.3), faster(T5LayerNorm(48))):
            ours = said(module, given)
            ours.sum().backward()
            found += [ours.detach(), *(one.grad for one in module.parameters() if one.grad is not None)]
        assert given.grad is not None
        return [*found, given.grad]

    assert len(same_on_any_threads(computed)) == 6


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_number_does_not_become_one(wrong: float) -> None:
    given = states(4, 8, 48).detach()
    given[2, 3, 7] = wrong
    for module in (made(), faster(T5LayerNorm(48))):
        result = said(module, given.clone().requires_grad_())
        assert not result[2, 3].isfinite().all()
        assert result[:2].isfinite().all()


def other_activation() -> nn.Module:
    return made(dense_act_fn="gelu_new")


def gated() -> nn.Module:
    return made(T5DenseGatedActDense)


def listened_to() -> nn.Module:
    module = made()
    module.wi.register_forward_hook(lambda *_: None)  # type: ignore[union-attr]
    return module


def biased() -> nn.Module:
    module = made()
    module.wo = faster(nn.Linear(84, 48))
    return module


@pytest.mark.parametrize("build", [other_activation, gated, listened_to, biased])
def test_what_is_not_the_same_is_left_to_the_modules(build: Callable[[], nn.Module]) -> None:
    module, given = build(), states(3, 50, 48)
    assert "FeedForwardFunctionBackward" not in functions(said(module, given))
    assert isinstance(module, FusedFeedForward) is (build is not gated)


def test_what_is_frozen_has_no_gradient() -> None:
    module, given = made(), states(3, 50, 48)
    module.wi.weight.requires_grad_(False)  # type: ignore[union-attr]
    said(module, given).sum().backward()
    assert module.wi.weight.grad is None and given.grad is not None  # type: ignore[union-attr]
    assert module.wo.weight.grad is not None  # type: ignore[union-attr]
