"""Partial transfer: what is transferred, what is random as a new network is, and what cannot be."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pipelines.errors import RecipeError
from pipelines.networks.elman import ElmanConfig, ElmanModel
from pipelines.parts.strategies import conflict
from pipelines.parts.strategies.full import Full
from pipelines.parts.strategies.gradual_unfreezing import GradualUnfreezing
from pipelines.parts.strategies.partial_transfer import PartialTransfer
from tests.pipelines.parts.strategies.harness import TINY, body, classifier, train

STACKS = {"bert": "encoder.layer.", "gpt2": "h.", "xlnet": "layer."}


def weights(network: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in network.named_parameters()}


@pytest.mark.parametrize("architecture", STACKS)
@pytest.mark.parametrize("kept", [0, 1, 2, 7])
def test_layers_above_are_random_and_all_else_stays(architecture: str, kept: int) -> None:
    network = classifier(architecture=architecture)
    with torch.no_grad():  # a trained network: nothing has its initial size
        for value in network.parameters():
            value.copy_(3 + torch.rand_like(value))
    before = weights(network)
    PartialTransfer(layers=kept).extend(network)
    backbone, stack = network.base_model_prefix, STACKS[architecture]
    tops = tuple(f"{backbone}.{stack}{layer}." for layer in range(kept, 2))
    for name, value in network.named_parameters():
        if name.startswith(tops):
            assert not torch.isclose(value, before[name]).any(), f"{name} is as it was"
            assert value.dim() == 1 or value.std() < 0.1, f"{name} is not as a new network has it"
        else:
            assert torch.equal(value, before[name]), f"{name} has changed"


def test_the_pooler_is_above_all_layers() -> None:
    for kept, same in ((2, True), (1, False)):
        network = body("bert")
        with torch.no_grad():
            network.pooler.dense.weight.fill_(5)
        PartialTransfer(layers=kept).extend(network)
        assert bool((network.pooler.dense.weight == 5).all()) is same


def test_what_it_does_is_drawn_by_the_seed() -> None:
    first, again, other = body("bert"), body("bert"), body("bert")
    for seed, network in ((1, first), (1, again), (2, other)):
        torch.manual_seed(seed)
        PartialTransfer().extend(network)
    name = "encoder.layer.1.output.dense.weight"
    assert torch.equal(first.get_parameter(name), again.get_parameter(name))
    assert not torch.equal(first.get_parameter(name), other.get_parameter(name))


def test_random_layers_train_with_the_others() -> None:
    trained = train([Full(), PartialTransfer(layers=1)], steps=1)
    assert {f"bert.encoder.layer.{layer}.output.dense.weight" for layer in range(2)} <= trained.moved[0]
    assert conflict([Full(), PartialTransfer(), GradualUnfreezing()]) is None
    assert "both decide which of its start's weights" in str(conflict([PartialTransfer(), PartialTransfer(layers=2)]))


def test_backbones_without_layers_are_refused() -> None:
    with pytest.raises(RecipeError, match="the backbone elman names no list of layers; supported: .*bert"):
        PartialTransfer().extend(ElmanModel(ElmanConfig()))
    assert set(STACKS) <= set(TINY)
