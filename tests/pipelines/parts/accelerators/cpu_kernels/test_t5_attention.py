"""T5's self-attention as one function beside float64 and beside its modules, and when it leaves it to them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, T5Config
from transformers.models.t5.modeling_t5 import T5Attention, T5LayerCrossAttention, T5LayerSelfAttention

from pipelines.parts.accelerators.cpu_kernels import t5_attention
from pipelines.parts.accelerators.cpu_kernels.attention import NAME, attend
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close, same_on_any_threads
from tests.pipelines.parts.accelerators.cpu_kernels.graph import functions
from tests.pipelines.parts.accelerators.cpu_kernels.test_blocks import exact, hidden, learnt_alike, narrow, said, twice
from tests.pipelines.parts.accelerators.cpu_kernels.test_t5_blocks import made

LAYERS, SIZE = 3, 16
LEARNT = "relative_attention_bias.weight"


def attention(config: T5Config) -> nn.Module:
    return T5Attention(config, has_relative_attention_bias=True, layer_idx=0)


def block(kind: Callable[[T5Config], nn.Module] = attention, rate: float = 0.0, **settings: object) -> nn.Module:
    AttentionInterface.register(NAME, attend)
    return made(kind, rate=rate, d_kv=SIZE, num_heads=LAYERS, **{"attn_implementation": NAME, **settings})


@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
@pytest.mark.parametrize("length", [1, 20, 40])
def test_beside_float64(mask: str, length: int) -> None:
    module, states, added = block(is_decoder=mask == "causal"), narrow(2, length, 48), hidden(mask, length)
    ours = said(module, states, added)
    assert functions(ours) >= {"SelfAttentionFunctionBackward"} and ours.dtype is torch.bfloat16
    outer = torch.randn(ours.shape).bfloat16()
    ours.backward(outer)
    (one,), weights = twice(states), exact(module)
    weights[LEARNT] = module.get_parameter(LEARNT).detach().double().requires_grad_()  # which is looked up as it is
    query, key, value = (
        functional.linear(one, weights[f"{name}.weight"]).view(2, length, LAYERS, SIZE).transpose(1, 2)
        for name in "qkv"
    )
    places = torch.arange(length)
    near = module._relative_position_bucket(places[None] - places[:, None], bidirectional=mask != "causal")
    scores = query @ key.transpose(2, 3) + weights[LEARNT][near].permute(2, 0, 1)
    probabilities = torch.softmax(scores if added is None else scores + added.double(), dim=-1)
    wanted = functional.linear((probabilities @ value).transpose(1, 2).reshape(2, length, 48), weights["o.weight"])
    wanted.backward(outer.double())
    close(ours, wanted, torch.bfloat16, more=6)
    close(states.grad, one.grad, torch.bfloat16, more=12)
    if length == 1:  # there is nothing to choose from: what is left of the gradients of scores is rounding
        for name in ("q.weight", "k.weight", LEARNT):
            of = module.get_parameter(name)
            assert of.grad is not None and of.grad.abs().max() < 0.02 * outer.float().norm()
            of.grad = weights[name].grad.float()  # type: ignore[union-attr]
    learnt_alike(module, weights, more=12)


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
def test_two_layers_say_what_their_modules_say(rate: float, kind: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same masks; the second takes the bias of the first, which learns from both."""
    first = block(lambda config: T5LayerSelfAttention(config, has_relative_attention_bias=True, layer_idx=0), rate)
    second = block(lambda config: T5LayerSelfAttention(config, layer_idx=1), rate)
    given, outer = torch.randn(2, 40, 48).to(kind).requires_grad_(), torch.randn(2, 40, 48).to(kind)
    weights, found = [*first.parameters(), *second.parameters()], []
    for fused in (True, False):
        if not fused:
            monkeypatch.setattr(t5_attention, "can_fuse", lambda *_: False)
        torch.manual_seed(7)
        with torch.autocast("cpu", torch.bfloat16):
            states, bias, _ = first(given, attention_mask=hidden("padding", 40))
            result = second(states, attention_mask=hidden("padding", 40), position_bias=bias)[0]
        assert ("SelfAttentionFunctionBackward" in functions(result)) is fused
        assert ("AttentionFunctionBackward" in functions(result)) is not fused
        found.append([result.detach(), *torch.autograd.grad(result, [given, *weights], outer)])
    for one, other in zip(*found, strict=True):
        assert one.dtype is other.dtype
        close(one, other, torch.bfloat16, more=4)


def test_any_number_of_threads_says_the_same() -> None:
    def computed() -> list[Tensor]:
        module, states = block(rate=0.3), narrow(3, 70, 48)
        result = said(module, states)
        result.float().square().sum().backward()
        return [result, *(one.grad for one in (states, *module.parameters()) if one.grad is not None)]

    assert len(same_on_any_threads(computed)) == 2 + 5


def test_what_is_no_number_stays_none() -> None:
    states = torch.randn(2, 4, 48)
    states[0, 1, 2] = torch.nan
    result = said(block(), states)
    assert result[0, 1].isnan().all() and result[1].isfinite().all()


def test_what_is_frozen_has_no_gradient() -> None:
    names = [name for name, _ in block().named_parameters()]
    for only in names:
        module = block()
        for name, one in module.named_parameters():
            one.requires_grad_(name == only)
        result = said(module, narrow(2, 20, 48).detach())
        assert ("SelfAttentionFunctionBackward" in functions(result)) is (only != "o.weight")
        result.float().square().sum().backward()
        assert [name for name, one in module.named_parameters() if one.grad is not None] == [only]


def test_weights_are_there_for_who_asks() -> None:
    module, states = block(), narrow(2, 5, 48)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(states)[2] is None
        assert module(states, output_attentions=True)[2].shape == (2, LAYERS, 5, 5)
        module.register_forward_hook(lambda *_: None)
        assert module(states)[2].shape == (2, LAYERS, 5, 5)


def listened_to() -> nn.Module:
    module = block()
    module.k.register_forward_hook(lambda *_: None)  # type: ignore[union-attr]
    return module


def biased() -> nn.Module:
    module = block()
    module.q.bias = nn.Parameter(torch.ones(48))  # type: ignore[union-attr]
    return module


def without_distances() -> nn.Module:
    return block(T5Attention)  # type: ignore[arg-type]  # which has a further argument that is optional


def attended_otherwise() -> nn.Module:
    return block(attn_implementation="sdpa")


@pytest.mark.parametrize("build", [listened_to, biased, without_distances, attended_otherwise])
def test_what_is_not_the_same_is_left_to_the_modules(build: Callable[[], nn.Module]) -> None:
    module, states = build(), narrow(2, 20, 48)
    assert isinstance(module, t5_attention.FusedT5Attention)
    result = said(module, states)
    assert "SelfAttentionFunctionBackward" not in functions(result) and result.isfinite().all()


def test_attention_to_another_text_is_left_to_the_modules() -> None:
    module, states, other = block(T5LayerCrossAttention), narrow(2, 20, 48), narrow(2, 30, 48)
    result = said(module, states, other)
    assert "AttentionFunctionBackward" in functions(result) and "SelfAttentionFunctionBackward" not in functions(result)
