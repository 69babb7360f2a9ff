"""Neurons and layers: their importance is the derivative by an explicit gate and that of the weights out of them
(Molchanov et al. 2019, eq. 8), and a network without some of them is the whole network with those gated by 0."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from pipelines.networks.gates import GatedUnits, Neurons, WholeLayer, gated
from pipelines.networks.projections import axis_of, width_of
from pipelines.parts.architectures import Architecture
from pipelines.parts.compressions.feed_forward_widths import feed_forward_layers
from pipelines.parts.compressions.gate_importance import gate_importance, remove_least
from pipelines.parts.compressions.layer_pruning import LayerPruning
from pipelines.parts.compressions.neuron_pruning import NeuronPruning
from tests.reference.test_head_importance import ARCHITECTURES, Examples, classifier, examples


def neurons(network: PreTrainedModel) -> list[Neurons]:
    layers = feed_forward_layers(network)
    return [Neurons(path, outer, width_of(outer, inputs=True)) for path, (_, outer) in layers.items()]


def whole_layers(network: PreTrainedModel) -> list[WholeLayer]:
    architecture = Architecture.of(network.config)
    assert architecture is not None
    (stack,) = architecture.stacks
    children = network.base_model.get_submodule(stack).children()
    return [WholeLayer(f"{stack}.{number}", layer) for number, layer in enumerate(children)]


def singles(calibration: Examples) -> list[tuple[Tensor, Tensor]]:
    """The examples one by one."""
    return [(ids[row : row + 1], labels[row : row + 1]) for ids, labels in calibration.rows for row in range(len(ids))]


def by_differences(
    network: PreTrainedModel,
    sites: Sequence[GatedUnits],
    masks: Sequence[Tensor],
    calibration: Examples,
    site: int,
    units: Sequence[int],
) -> list[float]:
    """E|∂L/∂ξ| of `units` of `site`, by finite differences of the loss of each example."""
    step, expected = 1e-5, []
    for unit in units:
        changes = []
        for ids, labels in singles(calibration):
            losses = []
            for sign in (1, -1):
                moved = [mask.clone() for mask in masks]
                moved[site][unit] += sign * step
                with torch.no_grad(), gated(sites, moved):
                    losses.append(float(nn.functional.cross_entropy(network(input_ids=ids).logits, labels)))
            changes.append(abs(losses[0] - losses[1]) / (2 * step))
        expected.append(float(np.mean(changes)))
    return expected


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_importance_is_the_mean_derivative_by_the_gate(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    network, calibration = classifier(architecture, tokenizer), examples()
    for sites in (neurons(network), whole_layers(network)):
        masks = [torch.ones(one.count, dtype=torch.double) for one in sites]
        if sites[0].count > 1:
            masks[1][2] = 0  # a neuron that is gone already
        scores = gate_importance(network, sites, masks, calibration)
        for site, one in enumerate(sites):
            units = range(one.count)[:: max(1, one.count // 8)]
            expected = by_differences(network, sites, masks, calibration, site, units)
            np.testing.assert_allclose(scores[site][list(units)], expected, rtol=1e-4, atol=1e-9)
        assert max(map(max, scores)) > 1e-3


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_importance_of_a_neuron_is_that_of_the_weights_out_of_it(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    """|Σ w · ∂L/∂w| over the weights out of it, in the mean over examples."""
    network, calibration = classifier(architecture, tokenizer), examples()
    sites = neurons(network)
    scores = gate_importance(network, sites, [torch.ones(one.count) for one in sites], calibration)
    expected = [np.zeros(one.count) for one in sites]
    for ids, labels in singles(calibration):
        network.zero_grad()
        nn.functional.cross_entropy(network(input_ids=ids).logits, labels).backward()
        for total, one in zip(expected, sites, strict=True):
            weight = one.outer.weight
            assert isinstance(weight, Tensor) and weight.grad is not None
            products = (weight * weight.grad).detach().sum(axis_of(one.outer, inputs=False))
            total += products.abs().numpy() / len(singles(calibration))
    for score, other in zip(scores, expected, strict=True):
        np.testing.assert_allclose(score, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.no_grad()
def test_what_is_removed_was_gated_by_zero(architecture: str, tokenizer: PreTrainedTokenizerFast) -> None:
    ids = examples().rows[0][0]
    for part in (NeuronPruning(share=0.6, rounds=2), LayerPruning(share=0.5)):
        network, blank = classifier(architecture, tokenizer), classifier(architecture, tokenizer)
        sites: list[Neurons] | list[WholeLayer]
        with torch.enable_grad():
            if isinstance(part, NeuronPruning):
                sites = neurons(network)
                kept = part.choose(network, examples())
                masks = [_mask(kept[one.path]["kept"], one.count) for one in sites]
            else:
                sites = whole_layers(network)
                chosen = part._kept(network, examples())
                masks = [torch.tensor([float(number in chosen)]) for number in range(len(sites))]
            whole = network(input_ids=ids).logits
            with gated(sites, masks):
                expected = network(input_ids=ids).logits
            result, change = part.shrink(network, examples())
        torch.testing.assert_close(result(input_ids=ids).logits, expected, rtol=0, atol=1e-12)
        assert (whole - expected).abs().max() > 1e-4
        if isinstance(part, NeuronPruning):
            assert change == kept
            again = part.rebuild(blank, change)
            again.load_state_dict(result.state_dict())
            assert torch.equal(again(input_ids=ids).logits, result(input_ids=ids).logits)
        else:
            assert change == {} and result.config.num_hidden_layers == 1


def _mask(kept: str, count: int) -> Tensor:
    """The bits that a record holds, the first in the highest bit of the first digit."""
    digits = "".join(f"{int(digit, 16):04b}" for digit in kept)
    return torch.tensor([float(bit) for bit in digits[:count]])


def test_rounds_remove_the_least_important_of_what_is_left(tokenizer: PreTrainedTokenizerFast) -> None:
    network, calibration = classifier("bert", tokenizer), examples()
    sites = neurons(network)
    masks = [torch.ones(one.count) for one in sites]
    total = sum(one.count for one in sites)
    for number in (1, 2):
        scores = gate_importance(network, sites, masks, calibration)
        left = [
            (scores[site][unit], site, unit)
            for site in range(len(sites))
            for unit in range(sites[site].count)
            if masks[site][unit]
        ]
        gone = sorted(left)[: len(left) - (total - round(total / 2 * number / 2))]
        for _, site, unit in gone:
            masks[site][unit] = 0
    change = NeuronPruning(share=0.5, rounds=2).choose(network, calibration)
    for one, mask in zip(sites, masks, strict=True):
        assert torch.equal(_mask(change[one.path]["kept"], one.count), mask)
        assert change[one.path]["width"] == int(mask.sum())
    assert [one.count for one in neurons(network)] == [one.count for one in sites], "to choose changes nothing"


def test_every_site_keeps_what_it_must() -> None:
    masks = [torch.ones(3), torch.ones(3)]
    remove_least(masks, [np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])], 2)
    assert [mask.tolist() for mask in masks] == [[0, 0, 1], [0, 0, 1]]
    remove_least(masks, [np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 3.0])], 1, least=0)
    assert [mask.tolist() for mask in masks] == [[0, 0, 0], [0, 0, 1]]
