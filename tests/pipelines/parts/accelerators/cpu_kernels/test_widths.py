"""Sub-networks of a network that has the kernels: where a hook narrows a layer, no block computes past it."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel

from pipelines.networks.leading_widths import WidthLayer, at_width, width_layers
from pipelines.parts.accelerators.cpu_kernels.swapping import swap_modules
from pipelines.parts.architectures import Architecture
from tests.pipelines.parts.accelerators.cpu_kernels.test_networks import inputs, network


def layers_of(body: PreTrainedModel) -> list[WidthLayer]:
    architecture = Architecture.of(body.config)
    assert architecture is not None
    return width_layers(body, architecture.stacks, architecture.head_width(body.config))


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
def test_a_sub_network_is_the_same_with_the_kernels(kind: str, compiled: Path) -> None:
    plain = network(kind)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    fast = deepcopy(plain)
    assert swap_modules([fast], compiled)

    def states(body: PreTrainedModel, share: float, bfloat16: bool) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16), at_width(layers_of(body), share):
            result: Tensor = body(**inputs(kind)).last_hidden_state
        return result

    expected, whole = states(plain, 0.5, False).detach(), states(plain, 1.0, False).detach()
    ours = states(fast, 0.5, True)
    rounding = (states(fast, 1.0, True).detach() - whole).abs().mean()
    assert (ours.detach() - expected).abs().mean() < 3 * rounding < 0.3 * (whole - expected).abs().mean()
    ours.double().square().sum().backward()
    layer = layers_of(fast)[0]
    gradient = layer.inner.weight.grad
    assert isinstance(gradient, Tensor)
    of_neurons = gradient.abs().sum(0 if kind == "gpt2" else 1)
    assert (of_neurons[: layer.neurons // 2] > 0).all() and not of_neurons[layer.neurons // 2 :].any()
