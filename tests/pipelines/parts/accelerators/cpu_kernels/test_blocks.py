"""Blocks of BERT-shaped networks as single functions beside float64, forward and backward."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AttentionInterface, BertConfig
from transformers.models.bert.modeling_bert import BertIntermediate, BertOutput, BertSelfAttention

from pipelines.parts.accelerators.cpu_kernels.attention import NAME, attend
from pipelines.parts.accelerators.cpu_kernels.dropout import draw_dropout
from pipelines.parts.accelerators.cpu_kernels.swapping import KERNEL_MODULES, with_block
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close, same_on_any_threads
from tests.pipelines.parts.accelerators.cpu_kernels.graph import functions

CONFIG = {"hidden_size": 48, "intermediate_size": 80, "num_attention_heads": 3, "attn_implementation": NAME}
LEAST = torch.finfo(torch.float32).min


def made(kind: Callable[[BertConfig], nn.Module], **settings: object) -> nn.Module:
    """A block of random weights, as a network has it that the kernels were given to."""
    AttentionInterface.register(NAME, attend)
    torch.manual_seed(1)
    config = BertConfig(**{**CONFIG, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, **settings})
    module = kind(config).train()
    for weight in module.parameters():
        nn.init.normal_(weight, std=0.15)
    for child in module.modules():
        child.__class__ = with_block(KERNEL_MODULES.get(type(child), type(child)))
    return module


def exact(module: nn.Module) -> dict[str, Tensor]:
    """Its weights in float64, to learn beside it; those of linear layers as the product reads them."""
    found = {}
    for name, one in module.named_parameters():
        read = one.detach().bfloat16() if one.dim() > 1 else one.detach()
        found[name] = read.double().requires_grad_()
    return found


def narrow(*shape: int) -> Tensor:
    return torch.randn(shape).bfloat16().requires_grad_()


def twice(*tensors: Tensor) -> list[Tensor]:
    return [one.detach().double().requires_grad_() for one in tensors]


def said(module: nn.Module, *given: object) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        result = module(*given)
    return result[0] if isinstance(result, tuple) else result


def learnt_alike(module: nn.Module, weights: dict[str, Tensor], more: float = 6) -> None:
    for name, one in module.named_parameters():
        close(one.grad, weights[name].grad, torch.bfloat16, more=more)


@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (2, 200)])
def test_residual(rate: float, shape: tuple[int, int]) -> None:
    module = made(BertOutput, hidden_dropout_prob=rate)
    states, residual = narrow(*shape, 80), narrow(*shape, 48)
    torch.manual_seed(5)
    ours = said(module, states, residual)
    assert functions(ours) >= {"ResidualNormFunctionBackward"} and ours.dtype is torch.bfloat16
    outer = torch.randn(ours.shape).bfloat16()
    ours.backward(outer)
    (one, other), weights = twice(states, residual), exact(module)
    product = functional.linear(one, weights["dense.weight"], weights["dense.bias"])
    assert states.grad is not None and residual.grad is not None
    kept = mask_of(module, 5, shape)
    assert kept.mean().item() == pytest.approx(1 - rate, abs=0.2 if kept.numel() < 100 else 0.03)
    added = other + product * kept * draw_dropout(rate).scale
    wanted = functional.layer_norm(added, (48,), weights["LayerNorm.weight"], weights["LayerNorm.bias"], 1e-12)
    wanted.backward(outer.double())
    close(ours, wanted, torch.bfloat16, more=2)
    close(states.grad, one.grad, torch.bfloat16, more=6)
    close(residual.grad, other.grad, torch.bfloat16, more=6)
    learnt_alike(module, weights)


def mask_of(module: nn.Module, seed: int, shape: tuple[int, int]) -> Tensor:
    """What it keeps with a seed, as seen where all that it adds is 1."""
    plain = copy.deepcopy(module)
    nn.init.zeros_(plain.dense.weight)  # type: ignore[arg-type, union-attr]
    nn.init.ones_(plain.dense.bias)  # type: ignore[arg-type, union-attr]
    torch.manual_seed(seed)
    result = said(plain, torch.zeros(*shape, 80), torch.zeros(*shape, 48))
    (sums,) = (one for one in result.grad_fn.saved_tensors if one.shape == (shape[0] * shape[1], 48))
    return (sums != 0).double().view(result.shape)


@pytest.mark.parametrize("spread", [0.4, 3.0])
def test_intermediate(spread: float) -> None:
    module = made(BertIntermediate)
    nn.init.normal_(module.dense.bias, std=10 * spread)  # type: ignore[arg-type, union-attr]
    states = narrow(3, 50, 48)
    ours = said(module, states)
    assert functions(ours) >= {"LinearGELUBackward"} and ours.dtype is torch.bfloat16
    outer = torch.randn(ours.shape).bfloat16()
    ours.backward(outer)
    (one,), weights = twice(states), exact(module)
    wanted = functional.gelu(functional.linear(one, weights["dense.weight"], weights["dense.bias"]))
    wanted.backward(outer.double())
    close(ours, wanted, torch.bfloat16, more=2)
    close(states.grad, one.grad, torch.bfloat16, more=6)
    learnt_alike(module, weights)


def test_gelu_at_every_number_that_it_can_read() -> None:
    """Of all bfloat16 numbers: what it says, and its slope."""
    numbers = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16)
    numbers = numbers[numbers.isfinite() & (numbers.abs() < 1e30)]
    numbers = numbers[: len(numbers) // 16 * 16].view(-1, 16).clone()
    module = made(BertIntermediate, hidden_size=16, intermediate_size=16)
    nn.init.eye_(module.dense.weight)  # type: ignore[arg-type, union-attr]
    nn.init.zeros_(module.dense.bias)  # type: ignore[arg-type, union-attr]
    numbers = numbers[(numbers.abs() > 1e-30).all(1)].requires_grad_()  # a product knows no denormal ones
    ours = said(module, numbers)
    ours.backward(torch.ones_like(ours))
    (read,) = twice(numbers)
    wanted = functional.gelu(read)
    wanted.sum().backward()
    assert read.grad is not None and numbers.grad is not None
    assert (ours.double() - wanted).abs().le(2**-8 * wanted.abs() + 2e-5).all()
    assert (numbers.grad.double() - read.grad).abs().max() <= 2**-8 * 1.2
    assert not ours[read < -5].any() and not numbers.grad[read < -5].any()


def hidden(mask: str, length: int) -> Tensor | None:
    """What is added to scores of two texts."""
    return {
        "none": None,
        "padding": torch.zeros(2, 1, 1, length).masked_fill(torch.arange(length) >= max(1, length - 3), LEAST),
        "causal": torch.zeros(1, 1, length, length).masked_fill(torch.ones(length, length).triu(1).bool(), LEAST),
    }[mask]


@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
@pytest.mark.parametrize("length", [1, 20, 40])
def test_self_attention(mask: str, length: int) -> None:
    module = made(BertSelfAttention)
    states, added = narrow(2, length, 48), hidden(mask, length)
    ours = said(module, states, added)
    assert functions(ours) >= {"SelfAttentionFunctionBackward"} and ours.dtype is torch.bfloat16
    outer = torch.randn(ours.shape).bfloat16()
    ours.backward(outer)
    (one,), weights = twice(states), exact(module)
    query, key, value = (
        functional.linear(one, weights[f"{name}.weight"], weights[f"{name}.bias"])
        .view(2, length, 3, 16)
        .transpose(1, 2)
        for name in ("query", "key", "value")
    )
    wanted, _ = attend(module, query, key, value, None if added is None else added.double(), scaling=0.25)
    wanted = wanted.reshape(2, length, 48)
    wanted.backward(outer.double())
    close(ours, wanted, torch.bfloat16, more=6)
    close(states.grad, one.grad, torch.bfloat16, more=12)
    bias = module.key.bias  # the same for every key, which no softmax sees
    assert isinstance(bias, nn.Parameter) and bias.grad is not None and weights["key.bias"].grad is not None
    assert bias.grad.abs().max() < 0.02 * outer.float().norm()
    bias.grad = weights["key.bias"].grad.float()
    learnt_alike(module, weights, more=12)


def test_what_attention_drops_has_no_gradient() -> None:
    """A value that is dropped wherever it is asked for learns nothing."""
    module = made(BertSelfAttention, attention_probs_dropout_prob=0.9)
    states = narrow(1, 40, 48)
    once, again = (said(module, states) for torch_seed in (1, 1) if torch.manual_seed(torch_seed))
    assert torch.equal(once, again)
    empty = (once.view(40, 3, 16) == 0).all(-1)  # tokens and heads of which nothing was kept
    assert empty.any() and not empty.all()
    assert once.float().std() > 1.5 * said(module.eval(), states).float().std()
    once.float().square().sum().backward()
    assert states.grad is not None and states.grad.isfinite().all()


@pytest.mark.parametrize(
    "shape",
    [
        *((1, 32, 32), (4096, 64, 32), (777, 32, 96), (300, 96, 160), (50, 48, 32), (33, 7, 5)),
        # larger than a core's cache: all rows at once, either way round, and too many rows for that
        *((605, 8192, 96), (1024, 96, 8192), (1100, 8192, 96)),
    ],
)
def test_weight_gradient(shape: tuple[int, int, int]) -> None:
    """In tiles where the processor has some and both sides are whole pairs of them."""
    rows, high, wide = shape
    torch.manual_seed(2)
    gradient, read = torch.randn(rows, high).bfloat16(), torch.randn(rows, wide).bfloat16()
    ours = weight_gradient(gradient, read)
    assert ours.dtype is torch.float32 and ours.is_contiguous()
    close(ours, gradient.double().t() @ read.double(), torch.bfloat16)
    apart = read.t().contiguous().t()  # as whoever transposes leaves it
    assert torch.equal(weight_gradient(gradient, apart), ours)
    assert torch.equal(weight_gradient(gradient[:0], read[:0]), torch.zeros(high, wide))


def test_what_is_no_number_stays_none() -> None:
    for kind, width in ((BertOutput, 80), (BertIntermediate, 48), (BertSelfAttention, 48)):
        states = torch.randn(2, 4, width)
        states[0, 1, 2] = torch.nan
        given = (states, torch.randn(2, 4, 48)) if kind is BertOutput else (states,)
        result = said(made(kind), *given)
        assert result[0, 1].isnan().all() and result[1].isfinite().all()


def test_any_number_of_threads_says_the_same() -> None:
    def computed() -> list[Tensor]:
        found = []
        for kind, width in ((BertOutput, 80), (BertIntermediate, 48), (BertSelfAttention, 48)):
            module = made(kind, hidden_dropout_prob=0.2, attention_probs_dropout_prob=0.2)
            states = narrow(3, 70, width)
            result = said(module, states, narrow(3, 70, 48)) if kind is BertOutput else said(module, states)
            result.float().square().sum().backward()
            found += [result, states.grad, *(one.grad for one in module.parameters())]
        for high in (128, 16384):
            found.append(weight_gradient(torch.randn(999, high).bfloat16(), torch.randn(999, 64).bfloat16()))
        return [one for one in found if one is not None]

    assert len(same_on_any_threads(computed)) == 6 + 4 + 8 + 2
