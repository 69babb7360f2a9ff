"""Each function of the kernels beside torch's own in float64, forward and backward."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from pipelines.networks.masked_softmax import masked_softmax
from pipelines.networks.vocabulary_loss import IGNORED, vocabulary_cross_entropy
from pipelines.parts.accelerators.cpu_kernels.attention import attend
from pipelines.parts.accelerators.cpu_kernels.dropout import KernelDropout, draw_dropout, dropout
from pipelines.parts.accelerators.cpu_kernels.layer_norm import KernelLayerNorm
from pipelines.parts.accelerators.cpu_kernels.linear import KernelLinear
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close, same_on_any_threads

TYPES = pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])


@TYPES
@pytest.mark.parametrize("width", [2, 15, 16, 127, 30528])
def test_cross_entropy(kind: torch.dtype, width: int) -> None:
    torch.manual_seed(width)
    scores = (4 * torch.randn(37, width)).to(kind).requires_grad_()
    targets = torch.randint(0, width, (37,))
    targets[::5] = IGNORED
    exact = scores.detach().double().requires_grad_()
    ours = vocabulary_cross_entropy(scores, targets)
    theirs = functional.cross_entropy(exact, targets)
    ours.backward()
    theirs.backward()
    assert ours.dtype is torch.float32
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-6, abs=1e-6)
    close(scores.grad, exact.grad, kind, more=4)
    assert scores.grad is not None and not scores.grad[::5].any()


@TYPES
def test_a_word_that_cannot_be_costs_nothing(kind: torch.dtype) -> None:
    scores = torch.randn(3, 40).to(kind)
    scores[1, 33] = -math.inf
    scores.requires_grad_()
    loss = vocabulary_cross_entropy(scores, torch.tensor([1, 2, 3]))
    loss.backward()
    wanted = functional.cross_entropy(scores.detach().double(), torch.tensor([1, 2, 3]))
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-6)
    assert scores.grad is not None and scores.grad.isfinite().all() and abs(float(scores.grad[1, 33])) < 1e-30


@TYPES
def test_spent_scores_hold_their_gradient(kind: torch.dtype) -> None:
    torch.manual_seed(0)
    states, table = torch.randn(20, 8), torch.randn(50, 8, requires_grad=True)
    targets = torch.randint(0, 50, (20,))
    kept = (states @ table.T).to(kind)
    apart = vocabulary_cross_entropy(kept, targets)
    (wanted,) = torch.autograd.grad(apart, table)
    scores = (states @ table.T).to(kind)
    (got,) = torch.autograd.grad(vocabulary_cross_entropy(scores, targets, inplace=True), table)
    assert torch.equal(wanted, got)
    assert float(scores.detach().sum(1).abs().max()) < 0.01  # each row of a gradient sums to nothing


def test_scores_that_a_gradient_still_needs_are_not_overwritten_in_silence() -> None:
    scores = torch.tanh(torch.randn(4, 9, requires_grad=True))
    loss = vocabulary_cross_entropy(scores, torch.randint(0, 9, (4,)), inplace=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_loss_that_is_multiplied_has_a_multiplied_gradient() -> None:
    scores = torch.randn(4, 9, requires_grad=True)
    targets = torch.randint(0, 9, (4,))
    (once,) = torch.autograd.grad(vocabulary_cross_entropy(scores, targets), scores)
    (thrice,) = torch.autograd.grad(3 * vocabulary_cross_entropy(scores, targets), scores)
    torch.testing.assert_close(thrice, 3 * once)


def test_a_target_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(IndexError, match="vocabulary of 9"):
        vocabulary_cross_entropy(torch.randn(2, 9), torch.tensor([3, 9]))
    with pytest.raises(IndexError, match="vocabulary of 9"):
        vocabulary_cross_entropy(torch.randn(2, 9), torch.tensor([3, -1]))


@TYPES
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_number_does_not_become_one(kind: torch.dtype, wrong: float) -> None:
    values = torch.randn(3, 40).to(kind)
    values[1, 33] = wrong
    scores = values.clone().requires_grad_()
    loss = vocabulary_cross_entropy(scores, torch.tensor([1, 2, 3]))
    loss.backward()
    assert not loss.isfinite() and scores.grad is not None
    assert scores.grad[1].isnan().all() and scores.grad[0].isfinite().all()
    said = masked_softmax(values[None, None], None, 1.0, 0.0)
    assert said[0, 0, 1].isnan().all() and said[0, 0, 0].isfinite().all()
    assert dropout(values, 0.25).isfinite().logical_not().sum() <= 1
    with torch.autocast("cpu", torch.bfloat16):
        normalised_with_residual = KernelLayerNorm(40)(values)
    assert not normalised_with_residual[1].isfinite().any() and normalised_with_residual[0].isfinite().all()


@TYPES
@pytest.mark.parametrize("width", [2, 7, 128, 200])
@pytest.mark.parametrize("mask", ["none", "padding", "causal"])
def test_masked_softmax(kind: torch.dtype, width: int, mask: str) -> None:
    torch.manual_seed(1)
    scores = (3 * torch.randn(2, 3, width, width)).to(kind).requires_grad_()
    hidden = {
        "none": None,
        "padding": (torch.arange(width) >= max(1, width - 2))[None, None, None].expand(2, 1, 1, width),
        "causal": torch.ones(width, width, dtype=torch.bool).triu(1)[None, None],
    }[mask]
    added = None if hidden is None else torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)
    exact = scores.detach().double().requires_grad_()
    bias = 0.0 if hidden is None else torch.zeros(hidden.shape, dtype=torch.float64).masked_fill(hidden, -math.inf)
    outer = torch.randn(scores.shape).to(kind)
    ours = masked_softmax(scores, added, 0.3, 0.0)
    theirs = torch.softmax(exact * 0.3 + bias, -1)
    ours.backward(outer)
    theirs.backward(outer.double())
    close(ours, theirs, kind)
    close(scores.grad, exact.grad, kind, more=4)


def test_a_mask_may_be_as_narrow_as_it_likes() -> None:
    scores, mask = torch.randn(2, 3, 4, 50), torch.tensor([0.0, -5.0]).view(2, 1, 1, 1)
    torch.testing.assert_close(masked_softmax(scores, mask, 0.5, 0.0), torch.softmax(scores * 0.5 + mask, -1))


@TYPES
@pytest.mark.parametrize("width", [30, 128, 300])
def test_what_softmax_drops_has_no_gradient(kind: torch.dtype, width: int) -> None:
    torch.manual_seed(2)
    scores = torch.randn(2, 2, 40, width).to(kind).requires_grad_()
    said = masked_softmax(scores, None, 1.0, 0.3)
    plain = torch.softmax(scores.detach().double(), -1)
    kept = said != 0
    assert float(kept.double().mean()) == pytest.approx(0.7, abs=0.02)
    scale = draw_dropout(0.3).scale
    close(said, plain * kept * scale, kind, more=2)
    outer = torch.randn(scores.shape).to(kind)
    said.backward(outer)
    exact = scores.detach().double().requires_grad_()
    (torch.softmax(exact, -1) * kept * scale).backward(outer.double())
    close(scores.grad, exact.grad, kind, more=4)


@TYPES
@pytest.mark.parametrize("shape", [(5,), (128,), (3, 1000), (7, 33, 65)])
def test_dropout(kind: torch.dtype, shape: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    values = (torch.rand(shape) + 1).to(kind).requires_grad_()
    said = dropout(values, 0.1)
    kept = said != 0
    close(said, values.detach().double() * kept * draw_dropout(0.1).scale, kind, more=2)
    said.sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad != 0, kept)


def test_dropout_is_drawn_from_torchs_generator() -> None:
    values = torch.ones(100_000)
    torch.manual_seed(4)
    first, second = dropout(values, 0.5), dropout(values, 0.5)
    torch.manual_seed(4)
    assert torch.equal(dropout(values, 0.5), first)
    assert not torch.equal(first, second)
    both = ((first != 0) & (second != 0)).double().mean()
    assert float(both) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_a_rate_is_met_and_the_mean_stays(rate: float) -> None:
    torch.manual_seed(5)
    said = dropout(torch.ones(1_000_000), rate)
    assert float((said == 0).double().mean()) == pytest.approx(rate, abs=5 * math.sqrt(rate * (1 - rate) / 1e6))
    assert float(said.double().mean()) == pytest.approx(1, abs=5 * math.sqrt(rate / (1 - rate) / 1e6))


def test_a_rate_of_nothing_draws_nothing() -> None:
    torch.manual_seed(6)
    before = torch.get_rng_state()
    assert draw_dropout(0.0).dropped == 0
    assert torch.equal(torch.get_rng_state(), before)
    module = KernelDropout(0.5).eval()
    assert torch.equal(module(torch.ones(9)), torch.ones(9))


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(1, 5), (33, 128), (2, 9, 257)])
def test_layer_norm(kind: torch.dtype, shape: tuple[int, ...]) -> None:
    torch.manual_seed(7)
    module = KernelLayerNorm(shape[-1])
    nn.init.normal_(module.weight)
    nn.init.normal_(module.bias)
    states = (torch.randn(shape) + 2).to(kind).requires_grad_()
    outer = torch.randn(shape).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        said = module(states)
    assert said.dtype is torch.bfloat16
    said.backward(outer)
    exact = states.detach().double().requires_grad_()
    gain, bias = (one.detach().double().requires_grad_() for one in (module.weight, module.bias))
    wanted = functional.layer_norm(exact, (shape[-1],), gain, bias, module.eps)
    wanted.backward(outer.double())
    close(said, wanted, torch.bfloat16)
    close(states.grad, exact.grad, kind, more=4)
    close(module.weight.grad, gain.grad, torch.float32, more=10)
    close(module.bias.grad, bias.grad, torch.float32, more=10)


def test_layer_norm_stays_torchs_own_outside_autocast() -> None:
    module, states = KernelLayerNorm(8), torch.randn(3, 8)
    assert torch.equal(module(states), functional.layer_norm(states, (8,), module.weight, module.bias, module.eps))


def test_attention_beside_torchs_own() -> None:
    torch.manual_seed(11)
    query, key, value = (torch.randn(2, 3, length, 8, requires_grad=True) for length in (5, 7, 7))
    bias = torch.randn(1, 3, 5, 7, requires_grad=True)
    mask = torch.zeros(2, 1, 1, 7)
    mask[1, ..., 5:] = torch.finfo(torch.float32).min
    said, _ = attend(nn.Module(), query, key, value, mask, scaling=0.4, position_bias=bias)
    wanted = functional.scaled_dot_product_attention(query, key, value, mask + bias, scale=0.4).transpose(1, 2)
    torch.testing.assert_close(said, wanted)
    outer = torch.randn(said.shape)
    for one, other in zip(
        torch.autograd.grad(said, (query, key, value, bias), outer),
        torch.autograd.grad(wanted, (query, key, value, bias), outer),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


class Recorded(nn.Module):
    """One whose weights somebody records, as transformers does it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_forward_hook(lambda *_: None)


@TYPES
@pytest.mark.parametrize("rate", [0.0, 0.3])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("lengths", [(5, 7), (40, 40), (1, 130)])
def test_attention_is_the_same_whether_its_weights_are_recorded(
    kind: torch.dtype, rate: float, biased: bool, lengths: tuple[int, int]
) -> None:
    """In one function, or in the pieces that say the weights; of heads that are views, as networks have them."""
    rows, columns = lengths
    torch.manual_seed(13)
    given = [torch.randn(2, length, 3, 16).to(kind).requires_grad_() for length in (rows, columns, columns)]
    bias = torch.randn(1, 3, rows, columns, requires_grad=True) if biased else None
    mask = torch.zeros(2, 1, 1, columns)
    mask[1, ..., columns - 2 :] = torch.finfo(torch.float32).min
    outer = torch.randn(2, rows, 3, 16).to(kind)
    learnt = [*given, bias] if bias is not None else given
    found = []
    for module in (nn.Module(), Recorded()):
        torch.manual_seed(14)
        heads = [one.transpose(1, 2) for one in given]
        said, weights = attend(module, *heads, mask, scaling=0.4, dropout=rate, position_bias=bias)
        assert (weights is None) is (type(module) is nn.Module)
        found.append([said.detach(), *torch.autograd.grad(said, learnt, outer)])
    for one, other in zip(*found, strict=True):
        assert one.dtype is other.dtype and one.shape == other.shape
        close(one, other, kind, more=6)


def test_any_number_of_threads_says_the_same() -> None:
    def computed() -> list[Tensor]:
        torch.manual_seed(12)
        scores = torch.randn(40, 1000).bfloat16().requires_grad_()
        rows = torch.randn(2, 2, 20, 130).bfloat16().requires_grad_()
        states = torch.randn(70, 48).bfloat16().requires_grad_()
        norm, layer = KernelLayerNorm(48), KernelLinear(48, 100)
        vocabulary_cross_entropy(scores, torch.randint(0, 1000, (40,))).backward()
        masked_softmax(rows, None, 0.5, 0.2).square().sum().backward()
        with torch.autocast("cpu", torch.bfloat16):
            dropout(layer(norm(states)), 0.3).float().square().sum().backward()
        found = [scores.grad, rows.grad, states.grad, norm.weight.grad, norm.bias.grad, layer.bias.grad]
        return [one for one in found if one is not None]

    assert len(same_on_any_threads(computed)) == 6
