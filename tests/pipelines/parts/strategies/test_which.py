"""Strategies that choose which parameters train: what moves, what the network computes, what a saved one opens as."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertModel

from pipelines.errors import RecipeError
from pipelines.networks.adapter import AdaptedDropout, Bottleneck
from pipelines.networks.scalar_mix import ScalarMix
from pipelines.parts.strategies import ParameterGroup, Strategy
from pipelines.parts.strategies.adapter import ADAPTER, Adapter
from pipelines.parts.strategies.frozen import Frozen
from pipelines.parts.strategies.full import Full
from pipelines.parts.strategies.last_layer import LastLayer
from tests.pipelines.parts.strategies.harness import IDS, MASK, answers, body, classifier, train

HEAD = {"classifier.weight", "classifier.bias"}
MIXED = Frozen(features="scalar_mix")


def every_name(network: nn.Module) -> set[str]:
    return {name for name, _ in network.named_parameters()}


def test_full_trains_every_parameter_and_its_head_at_its_own_rate() -> None:
    trained = train([Full()], steps=1)
    # nothing is learnt about tokens and segments that no text has, but decay moves their matrices
    assert trained.moved[0] == every_name(trained.network)
    assert trained.share == 1
    body_group, head_group = ParameterGroup(1, 2, [], 1e-3, 0.0), ParameterGroup(3, 2, [], 1e-3, 0.0)
    assert [group.lr for group in Full(head_rate=5).groups([body_group, head_group])] == [1e-3, 5e-3]


def test_only_the_head_of_a_frozen_body_moves() -> None:
    trained = train([Frozen()])
    assert all(moved == HEAD for moved in trained.moved)
    assert trained.share == pytest.approx((16 * 3 + 3) / sum(p.numel() for p in trained.network.parameters()))


@pytest.mark.parametrize(("layers", "lowest"), [(1, 1), (2, 0), (7, 0)])
def test_last_layer_moves_the_top_of_the_body_and_the_head(layers: int, lowest: int) -> None:
    trained = train([LastLayer(layers=layers)])
    tops = tuple(f"bert.encoder.layer.{layer}." for layer in range(lowest, 2))
    assert trained.moved[0] == HEAD | {name for name in every_name(trained.network) if name.startswith(tops)}


def test_a_scalar_mix_is_equation_1_over_all_layers() -> None:
    network = body("bert")
    states = network(IDS, MASK, output_hidden_states=True).hidden_states
    classify = classifier()
    MIXED.extend(classify)
    classify.bert.load_state_dict(network.state_dict(), strict=False)
    classify.eval()
    with torch.no_grad():
        classify.scalar_mix.weights.copy_(torch.tensor([0.3, -1.0, 2.0]))
        classify.scalar_mix.gamma.fill_(0.7)
    w = torch.tensor([0.3, -1.0, 2.0]).double().exp()
    expected = 0.7 * sum(w[j] / w.sum() * states[j].double() for j in range(3))
    read = classify.bert(IDS, MASK).last_hidden_state
    assert torch.allclose(read.double(), expected, atol=1e-6)
    assert torch.allclose(classify(IDS, MASK).pooled.double(), expected.mean(1), atol=1e-6)


def test_a_mixture_moves_with_the_head_and_a_copy_has_its_own() -> None:
    trained = train([MIXED])
    assert trained.moved[-1] == HEAD | {"scalar_mix.weights", "scalar_mix.gamma"}
    before, copied = answers(trained.network), deepcopy(trained.network)
    with torch.no_grad():
        copied.scalar_mix.gamma.fill_(9.0)
    assert torch.equal(answers(trained.network), before)
    assert not torch.allclose(answers(copied), before)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra", "gpt2", "xlnet"])
def test_a_mixture_reads_any_body(architecture: str) -> None:
    inner = body(architecture)
    with torch.no_grad():
        states = inner(IDS, attention_mask=MASK, output_hidden_states=True).hidden_states
        mix = ScalarMix(inner.config.num_hidden_layers)
        mix.attach(inner)
        read = inner(IDS, attention_mask=MASK).last_hidden_state
    assert torch.allclose(read, torch.stack(states).mean(0), atol=1e-6)


def test_layers_of_several_widths_are_not_mixed() -> None:
    with pytest.raises(RecipeError, match=r"\(1, 2, 8\), \(1, 2, 12\).*features: top"):
        ScalarMix(1)((torch.zeros(1, 2, 8), torch.zeros(1, 2, 12)))
    with pytest.raises(RecipeError, match="t5.*features: top"):
        MIXED.extend(body("t5"))


def test_a_new_adapter_is_nearly_the_identity_and_is_houlsbys_formula() -> None:
    torch.manual_seed(0)
    bottleneck = Bottleneck(64, 8, 1e-3)
    x = torch.randn(5, 64)
    assert (bottleneck(x) - x).norm() < 1e-3 * x.norm()
    assert max(float(linear.weight.detach().abs().max()) for linear in (bottleneck.down, bottleneck.up)) <= 2e-3
    nn.init.normal_(bottleneck.down.weight)
    nn.init.normal_(bottleneck.up.bias)
    wide = {name: value.detach().double() for name, value in bottleneck.named_parameters()}
    z = x.double() @ wide["down.weight"].T + wide["down.bias"]
    gelu = z * 0.5 * (1 + torch.erf(z / 2**0.5))
    expected = x.double() + gelu @ wide["up.weight"].T + wide["up.bias"]
    assert torch.allclose(bottleneck(x).double(), expected, atol=1e-5)


def test_an_adapter_stands_between_the_sub_layers_output_and_the_residual() -> None:
    network = body("bert").requires_grad_(False)
    Adapter(size=4, deviation=1e-2).extend(network)
    inner = network.encoder.layer[0].attention.output
    with torch.no_grad():
        inner.dropout.adapter.up.bias.normal_()
    hidden, residual = torch.randn(2, 3, 16), torch.randn(2, 3, 16)
    h = functional.linear(hidden, inner.dense.weight, inner.dense.bias)
    adapted = h + inner.dropout.adapter.up(functional.gelu(inner.dropout.adapter.down(h)))
    expected = functional.layer_norm(adapted + residual, (16,), inner.LayerNorm.weight, inner.LayerNorm.bias, 1e-12)
    assert torch.allclose(inner.eval()(hidden, residual), expected, atol=1e-6)


def ask(network: nn.Module, architecture: str) -> Tensor:
    named = {"input_ids": IDS, "attention_mask": MASK}
    if architecture == "t5":
        named["decoder_input_ids"] = IDS
    with torch.no_grad():
        said: Tensor = network(**named).last_hidden_state
    return said


@pytest.mark.parametrize(
    ("architecture", "sub_layers"), [("bert", 4), ("roberta", 4), ("electra", 4), ("gpt2", 4), ("t5", 10)]
)
def test_two_adapters_a_layer_change_a_body_by_less_than_a_thousandth(architecture: str, sub_layers: int) -> None:
    network = body(architecture)
    before = ask(network, architecture)
    names = set(network.state_dict())
    Adapter(size=8).extend(network)
    adapted = [module for module in network.eval().modules() if isinstance(module, AdaptedDropout)]
    assert len(adapted) == sub_layers
    assert {name for name in network.state_dict() if ADAPTER not in name} == names, "the body's names are its own"
    after = ask(network, architecture)
    assert 0 < (after - before).norm() < 1e-3 * before.norm()
    for module in adapted:
        nn.init.normal_(module.adapter.up.bias)
        assert not torch.allclose(ask(network, architecture), after), "an adapter is not in the way of the text"
        nn.init.zeros_(module.adapter.up.bias)


def test_adapters_normalisation_and_the_head_are_all_that_moves() -> None:
    trained = train([Adapter(size=4)])
    normalised = {name for name in every_name(trained.network) if "LayerNorm" in name}
    adapters = {name for name in every_name(trained.network) if ADAPTER in name}
    assert len(adapters) == 16 and len(normalised) == 10
    assert set().union(*trained.moved) == HEAD | normalised | adapters
    assert trained.share < 0.2, "of a body whose layers are only four times as wide as its adapters"


def test_at_the_size_of_bert_base_adapters_are_two_parts_in_a_hundred() -> None:
    with torch.device("meta"):
        network = BertModel(BertConfig())
        whole = sum(value.numel() for value in network.parameters())
        Adapter().extend(network)
    added = sum(value.numel() for name, value in network.named_parameters() if ADAPTER in name)
    assert added == 24 * (2 * 768 * 64 + 64 + 768), "§2.1: 2md + d + m for each of two adapters a layer"
    assert added / whole == pytest.approx(0.0218, abs=1e-4)


def test_an_architecture_without_known_sub_layers_is_refused() -> None:
    with pytest.raises(RecipeError, match="xlnet.*bert, electra, gpt2, .*roberta, .*t5"):
        Adapter().extend(body("xlnet"))


def test_adapters_of_another_size_on_adapters_are_refused() -> None:
    network = classifier()
    Adapter(size=4).extend(network)
    with pytest.raises(RecipeError, match="already has adapters"):
        Adapter(size=8).extend(network)


@pytest.mark.parametrize("strategy", [Adapter(size=4), MIXED], ids=["adapter", "scalar_mix"])
def test_what_was_trained_opens_in_a_new_network_and_answers_the_same(strategy: Strategy) -> None:
    trained = train([strategy]).network
    opened = classifier(seed=1)
    assert not torch.allclose(answers(opened), answers(trained))
    strategy.extend(opened)
    opened.load_state_dict(trained.state_dict())
    assert torch.equal(answers(opened), answers(trained))


def test_the_same_seed_adds_the_same_adapters() -> None:
    first, second = train([Adapter(size=4)]).network, train([Adapter(size=4)]).network
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_a_head_without_weights_leaves_a_frozen_body_nothing_to_train() -> None:
    with pytest.raises(RecipeError, match="frozen: .*this head adds no weights"):
        Frozen().groups([ParameterGroup(0, 2, [("embedding", nn.Parameter(torch.ones(1)))], 1e-3, 0.0)])
