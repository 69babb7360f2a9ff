"""Scores that are computed once somebody asks for them, and the loss that asks for none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig

from pipelines.networks.several_heads import SeveralHeads
from pipelines.networks.vocabulary_loss import IGNORED, vocabulary_cross_entropy
from pipelines.parts.accelerators.cpu_kernels import linear_cross_entropy
from pipelines.parts.accelerators.cpu_kernels.lazy_logits import LazyLogits, VocabularyLinear
from pipelines.parts.accelerators.cpu_kernels.library import close_library
from pipelines.parts.accelerators.cpu_kernels.swapping import swap_modules
from pipelines.parts.heads import Head
from pipelines.task_families import Task, TaskFamily
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close


def layer(width: int, words: int, *, bias: bool = True) -> VocabularyLinear:
    torch.manual_seed(width + words)
    made = VocabularyLinear(width, words, bias=bias)
    if bias:
        nn.init.normal_(made.bias)
    return made


def projected(layer: VocabularyLinear, states: Tensor) -> LazyLogits:
    with torch.autocast("cpu", torch.bfloat16):
        said = layer(states)
    assert isinstance(said, LazyLogits)
    return said


def exact_loss(layer: VocabularyLinear, states: Tensor, targets: Tensor) -> tuple[Tensor, list[Tensor]]:
    """In float64, of the values as bfloat16 has them: what is to be differentiated, and its gradients."""
    rows = states.detach().bfloat16().double().requires_grad_()
    weight = layer.weight.detach().bfloat16().double().requires_grad_()
    read = [rows, weight]
    bias = None
    if layer.bias is not None:
        bias = layer.bias.detach().double().requires_grad_()
        read.append(bias)
    loss = functional.cross_entropy(functional.linear(rows, weight, bias).flatten(0, -2), targets.flatten())
    return loss, list(torch.autograd.grad(loss, read))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("width", "words"), [(8, 50), (64, 1000), (48, 37), (32, 4099)])
def test_a_loss_over_a_projection(width: int, words: int, bias: bool) -> None:
    made = layer(width, words, bias=bias)
    states = torch.randn(3, 11, width, requires_grad=True)
    targets = torch.randint(0, words, (3, 11))
    targets[0, ::3] = IGNORED
    said = projected(made, states)
    loss = vocabulary_cross_entropy(said, targets, inplace=True)
    assert not said.computed
    loss.backward()
    wanted, gradients = exact_loss(made, states, targets)
    assert loss.dtype is torch.float32
    # the scores are bfloat16, as autocast has them
    assert loss.item() == pytest.approx(wanted.item(), rel=2e-3)
    got = [states.grad, made.weight.grad, *([made.bias.grad] if bias else [])]
    for one, other in zip(got, gradients, strict=True):
        close(one, other, torch.bfloat16, more=6)


def test_a_batch_in_parts_says_what_it_says_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, states, targets = layer(32, 400), torch.randn(100, 32), torch.randint(0, 400, (100,))

    def computed() -> list[Tensor]:
        read = states.clone().requires_grad_()
        loss = vocabulary_cross_entropy(projected(made, read), targets, inplace=True)
        return [loss.detach(), *torch.autograd.grad(loss, [read, made.weight, made.bias])]

    whole = computed()
    monkeypatch.setattr(linear_cross_entropy, "POSITIONS", 33)
    for one, other in zip(computed(), whole, strict=True):
        close(one, other, torch.bfloat16, more=4)


def test_who_asks_for_scores_gets_the_layers() -> None:
    made, states = layer(16, 70), torch.randn(2, 5, 16)
    said = projected(made, states)
    assert said.shape == (2, 5, 70) and said.dtype is torch.bfloat16 and said.ndim == 3 and len(said) == 2
    assert said.requires_grad and not said.computed
    with torch.autocast("cpu", torch.bfloat16):
        plain = functional.linear(states, made.weight, made.bias)
    assert torch.equal(said[..., :3], plain[..., :3])
    assert said.computed
    assert torch.equal(said.softmax(-1), plain.softmax(-1))
    assert torch.equal(torch.cat([said, said], 1), torch.cat([plain, plain], 1))
    assert said.logits() is said.logits()
    got = torch.autograd.grad(said.float().square().sum(), made.weight)[0]
    wanted = torch.autograd.grad(plain.float().square().sum(), made.weight)[0]
    close(got, wanted, torch.bfloat16, more=4)


def test_scores_that_others_have_read_are_not_computed_again() -> None:
    made, states, targets = layer(16, 70), torch.randn(9, 16), torch.randint(0, 70, (9,))
    said = projected(made, states)
    first = functional.cross_entropy(said.float(), targets)
    kept = said.logits()
    second = vocabulary_cross_entropy(said, targets)
    assert said.logits() is kept
    assert second.item() == pytest.approx(first.item(), rel=1e-5)
    both = torch.autograd.grad(first + second, made.weight)[0]
    (once,) = torch.autograd.grad(vocabulary_cross_entropy(projected(made, states), targets), made.weight)
    close(both, 2 * once, torch.bfloat16, more=4)


def test_a_loss_that_others_read_too_computes_the_scores() -> None:
    made, states, targets = layer(16, 70), torch.randn(9, 16), torch.randint(0, 70, (9,))
    said = projected(made, states)
    vocabulary_cross_entropy(said, targets)
    assert said.computed


def test_gradients_of_a_weighted_loss() -> None:
    made, states, targets = layer(16, 70), torch.randn(9, 16), torch.randint(0, 70, (9,))
    once = torch.autograd.grad(vocabulary_cross_entropy(projected(made, states), targets, inplace=True), made.weight)[0]
    thrice = torch.autograd.grad(
        3 * vocabulary_cross_entropy(projected(made, states), targets, inplace=True), made.weight
    )
    torch.testing.assert_close(thrice[0], 3 * once)


def test_it_is_differentiated_once() -> None:
    made, states, targets = layer(16, 70), torch.randn(9, 16), torch.randint(0, 70, (9,))
    loss = vocabulary_cross_entropy(projected(made, states), targets, inplace=True)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="once only"):
        loss.backward()


def test_what_is_frozen_has_no_gradient() -> None:
    made, states, targets = layer(16, 70), torch.randn(9, 16, requires_grad=True), torch.randint(0, 70, (9,))
    made.weight.requires_grad_(False)
    made.bias.requires_grad_(False)
    vocabulary_cross_entropy(projected(made, states), targets, inplace=True).backward()
    assert made.weight.grad is None and made.bias.grad is None and states.grad is not None


def test_nothing_to_predict_is_a_loss_of_nothing() -> None:
    made, states = layer(16, 70), torch.randn(9, 16, requires_grad=True)
    loss = vocabulary_cross_entropy(projected(made, states), torch.full((9,), IGNORED), inplace=True)
    loss.backward()
    assert loss.item() == 0 and states.grad is not None and not states.grad.any()


def test_a_target_outside_the_vocabulary_is_refused() -> None:
    made = layer(16, 70)
    for wrong in (70, -1):
        with pytest.raises(IndexError, match="vocabulary of 70"):
            vocabulary_cross_entropy(projected(made, torch.randn(1, 16)), torch.tensor([wrong]), inplace=True)


def test_states_that_are_no_number_give_a_loss_that_is_none() -> None:
    made, states, targets = layer(16, 70), torch.randn(9, 16), torch.randint(0, 70, (9,))
    states[4, 4] = torch.nan
    assert not vocabulary_cross_entropy(projected(made, states), targets, inplace=True).isfinite()


def test_it_is_a_plain_layer_where_nothing_is_trained() -> None:
    made, states = layer(16, 70), torch.randn(9, 16)
    plain = functional.linear(states, made.weight, made.bias)
    assert torch.equal(made(states), plain)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert not isinstance(made(states), LazyLogits)
    close_library()
    with torch.autocast("cpu", torch.bfloat16):
        assert not isinstance(made(states), LazyLogits)


def test_memory_that_is_not_there_is_not_read() -> None:
    said = projected(layer(16, 70), torch.randn(9, 16))
    with torch._C.DisableTorchFunctionSubclass(), pytest.raises(RuntimeError, match=r"logits\(\)"):
        torch.clone(said)


def test_a_vocabulary_head_among_others_is_as_lazy_as_alone(tmp_path: Path) -> None:
    task = Task(TaskFamily.model_validate("text_classification"), ("one", "two"))
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    networks = {
        name: Head.model_validate(name).build(BertConfig(vocab_size=99, **sizes), one)
        for name, one in (("sequence_classification", task), ("masked_lm", None))
    }
    network = SeveralHeads(BertConfig(vocab_size=99, **sizes), networks)
    assert swap_modules([network], tmp_path)
    assert type(network.head("masked_lm").get_output_embeddings()) is VocabularyLinear
