"""Residuals whose gradients a product starts from: the same sums, whoever asks for which of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from pipelines.parts.accelerators.cpu_kernels import residual
from pipelines.parts.accelerators.cpu_kernels.swapping import swap_modules
from tests.pipelines.parts.accelerators.cpu_kernels.closeness import close

LENGTH = 8


def network(compiled: Path) -> BertModel:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=16, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )  # fmt: skip
    made = BertModel(config).train()
    assert swap_modules([made], compiled)
    return made


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many gradients have been left beside."""
    found: list[int] = []
    deposit = residual.deposit

    def counted(node: object, gradient: Tensor) -> None:
        found.append(1)
        deposit(node, gradient)

    monkeypatch.setattr(residual, "deposit", counted)
    yield found


def states(body: BertModel, texts: int = 4, narrow: bool = True) -> list[Tensor]:
    """What the embeddings and each layer say."""
    ids = torch.randint(0, 50, (texts, LENGTH), generator=torch.Generator().manual_seed(texts))
    hidden: list[Tensor] = []
    watched = [body.embeddings, *body.encoder.layer]
    hooks = [one.register_forward_hook(lambda module, given, said: hidden.append(said)) for one in watched]
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        body(input_ids=ids)
    for hook in hooks:
        hook.remove()
    return hidden


def weighted(hidden: Tensor) -> Tensor:
    return (hidden.double() * torch.linspace(-1, 1, hidden.numel(), dtype=torch.float64).view(hidden.shape)).sum()


def alone(body: BertModel, monkeypatch: pytest.MonkeyPatch) -> BertModel:
    """A network whose residuals send their gradients as autograd asks for them."""
    monkeypatch.setattr(residual, "residual_receiver", lambda said, read: None)
    return copy.deepcopy(body)


def slopes(body: BertModel) -> dict[str, Tensor]:
    return {name: one.grad for name, one in body.named_parameters() if one.grad is not None}


@pytest.mark.parametrize("texts", [4, 3])
@pytest.mark.parametrize("layers", [(2,), (0, 1, 2)])
def test_gradients_are_those_of_autograd(
    compiled: Path, monkeypatch: pytest.MonkeyPatch, left: list[int], texts: int, layers: tuple[int, ...]
) -> None:
    """Of whole numbers of rows and others, and of states that a loss reads, too."""
    body = network(compiled)
    hidden = states(body, texts)
    torch.stack([weighted(hidden[layer]) for layer in layers]).sum().backward()
    assert len(left) == 4, "two of each layer"
    other = alone(network(compiled), monkeypatch)
    hidden = states(other, texts)
    torch.stack([weighted(hidden[layer]) for layer in layers]).sum().backward()
    assert len(left) == 4
    exact = copy.deepcopy(network(compiled)).double()
    told = states(exact, texts, narrow=False)
    torch.stack([weighted(told[layer]) for layer in layers]).sum().backward()
    right = slopes(exact)
    scale = max(float(one.norm()) for one in right.values())
    for name, one in slopes(body).items():
        ours, usual = (float((grad.double() - right[name]).norm()) for grad in (one, slopes(other)[name]))
        assert ours <= 1.5 * usual + 1e-3 * scale, name


def test_a_graph_that_is_kept_says_the_same_again(compiled: Path, left: list[int]) -> None:
    body = network(compiled)
    loss = weighted(states(body)[-1])
    loss.backward(retain_graph=True)
    once = {name: grad.clone() for name, grad in slopes(body).items()}
    body.zero_grad()
    loss.backward()
    assert len(left) == 8
    assert all(torch.equal(once[name], grad) for name, grad in slopes(body).items())


def test_whoever_looks_at_states_sees_their_whole_gradient(
    compiled: Path, monkeypatch: pytest.MonkeyPatch, left: list[int]
) -> None:
    found = []
    for made in (lambda one: one, lambda one: alone(one, monkeypatch)):
        body = made(network(compiled))
        hidden = states(body)
        hidden[1].retain_grad()
        seen: list[Tensor] = []
        hidden[0].register_hook(seen.append)
        weighted(hidden[-1]).backward()
        assert hidden[1].grad is not None
        found.append((hidden[1].grad, seen[0]))
    assert len(left) == 4
    for one, other in zip(*found, strict=True):
        close(one, other, torch.bfloat16, more=4)


def test_asking_for_some_leaves_nothing_behind(compiled: Path, left: list[int]) -> None:
    body = network(compiled)
    weighted(states(body)[-1]).backward()
    whole = slopes(body)
    asked = [f"encoder.layer.1.{name}.weight" for name in ("attention.self.query", "output.dense")]
    hidden = states(body)
    left.clear()
    named = dict(body.named_parameters())
    loss = weighted(hidden[-1])
    found = torch.autograd.grad(loss, [named[name] for name in asked], retain_graph=True)
    for name, one in zip(asked, found, strict=True):
        assert torch.equal(one, whole[name])
    torch.autograd.grad(loss, [named[asked[1]]], retain_graph=True)  # what its residual leaves, nobody takes
    body.zero_grad()
    loss.backward()
    assert all(torch.equal(whole[name], grad) for name, grad in slopes(body).items())


def test_frozen_layers_below_take_no_part(compiled: Path, left: list[int]) -> None:
    body = network(compiled)
    weighted(states(body)[-1]).backward()
    whole = slopes(body)
    frozen = network(compiled)
    frozen.embeddings.requires_grad_(False)
    frozen.encoder.layer[0].requires_grad_(False)
    left.clear()
    weighted(states(frozen)[-1]).backward()
    assert len(left) == 1, "of the second layer's feed-forward network; what its attention reads has no gradient"
    for name, one in slopes(frozen).items():
        assert torch.equal(one, whole[name])
