"""Elman networks and stacked LSTMs: torch's own layers in float64, a state that is carried, and folders that open."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoModel, AutoModelForCausalLM, PreTrainedTokenizerFast

from pipelines.networks import register
from pipelines.networks.elman import ElmanConfig, ElmanForCausalLM
from pipelines.networks.lstm import LstmConfig, LstmForCausalLM
from pipelines.networks.recurrent import RecurrentConfig, RecurrentForCausalLM, RecurrentModel
from pipelines.parts.backbones.elman import Elman
from pipelines.parts.backbones.lstm import Lstm

VOCABULARY, ROWS, LENGTH, WIDTH, LAYERS = 60, 3, 11, 8, 2
KINDS: dict[str, tuple[type[RecurrentConfig], type[RecurrentForCausalLM], type[nn.RNNBase], int]] = {
    "elman": (ElmanConfig, ElmanForCausalLM, nn.RNN, 1),
    "lstm": (LstmConfig, LstmForCausalLM, nn.LSTM, 2),
}
"""Backbone → its configuration, its language model, torch's layer, and the tensors of a layer's state."""


@pytest.fixture
def ids() -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (ROWS, LENGTH), generator=torch.Generator().manual_seed(1))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def network_of(kind: str) -> RecurrentForCausalLM:
    config, network, _, _ = KINDS[kind]
    torch.manual_seed(0)
    sizes = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": LAYERS}
    return network(config(**sizes)).double().eval()


def test_it_is_a_stack_of_torchs_layers_below_a_linear_one(ids: torch.Tensor, kind: str) -> None:
    network = network_of(kind)
    backbone, layer = network.recurrent, KINDS[kind][2]
    stack = layer(WIDTH, WIDTH, LAYERS, batch_first=True).double()
    stack.load_state_dict(
        {
            f"{name.removesuffix('0')}{number}": value
            for number, one in enumerate(backbone.layers)
            for name, value in one.state_dict().items()
        }
    )
    expected, state = stack(backbone.embeddings(ids))
    outputs = network(ids, output_hidden_states=True)
    torch.testing.assert_close(outputs.last_hidden_state, expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(outputs.logits, expected @ network.lm_head.weight.T + network.lm_head.bias)
    assert len(outputs.hidden_states) == LAYERS + 1 and torch.equal(outputs.hidden_states[-1], outputs.raw)
    parts = state if isinstance(state, tuple) else (state,)
    flat = [part[number] for number in range(LAYERS) for part in parts]
    for ours, theirs in zip(outputs.memory, flat, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)


def test_an_elman_state_is_the_equation(ids: torch.Tensor) -> None:
    """Mikolov et al. 2010, eq. 2 to 4, one layer, with the activation written out."""
    network = network_of("elman").recurrent
    layer = network.layers[0]
    assert isinstance(layer, nn.RNN)
    state = torch.zeros(WIDTH, dtype=torch.float64)
    for at, word in enumerate(ids[0].tolist()):
        summed = layer.weight_ih_l0 @ network.embeddings.weight[word] + layer.weight_hh_l0 @ state
        summed = summed + layer.bias_ih_l0 + layer.bias_hh_l0
        state = 2 / (1 + torch.exp(-2 * summed)) - 1
        found = network(ids[:1, : at + 1], output_hidden_states=True).hidden_states[1][0, -1]
        torch.testing.assert_close(found, state, atol=1e-12, rtol=0)


@torch.no_grad()
def test_memory_carries_the_state_over_a_cut(ids: torch.Tensor, kind: str) -> None:
    network = network_of(kind)
    whole, first = network(ids), network(ids[:, :4])
    second = network(ids[:, 4:], memory=first.memory)
    torch.testing.assert_close(second.logits, whole.logits[:, 4:], atol=1e-12, rtol=0)
    for ours, theirs in zip(second.memory, whole.memory, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=0)
    assert [tuple(part.shape) for part in whole.memory] == [(ROWS, WIDTH)] * LAYERS * KINDS[kind][3]


def test_back_propagation_ends_at_the_beginning_of_a_row(ids: torch.Tensor, kind: str) -> None:
    network = network_of(kind)
    first = network(ids[:, :4])
    assert not any(part.requires_grad for part in first.memory)
    network(ids[:, 4:], memory=first.memory).logits.sum().backward()
    read = torch.zeros(VOCABULARY, dtype=torch.bool)
    read[ids[:, 4:].flatten()] = True
    weight = network.recurrent.embeddings.weight
    assert weight.grad is not None and torch.equal(weight.grad.abs().sum(1) > 0, read)


@torch.no_grad()
def test_padding_on_the_right_changes_nothing_before_it(ids: torch.Tensor, kind: str) -> None:
    network = network_of(kind)
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    padded, alone = network(ids.masked_fill(mask == 0, 0), mask).logits, network(ids[1:2, :6]).logits
    torch.testing.assert_close(padded[1, :6], alone[0], atol=1e-12, rtol=0)


@torch.no_grad()
def test_a_saved_folder_opens_by_the_auto_classes(ids: torch.Tensor, kind: str, tmp_path: Path) -> None:
    register()
    network = network_of(kind).float()
    network.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(again) is KINDS[kind][1] and torch.equal(again(ids).logits, network(ids).logits)
    opened = AutoModel.from_pretrained(tmp_path)
    assert isinstance(opened, RecurrentModel)
    assert torch.equal(opened(ids).last_hidden_state, network(ids).last_hidden_state)


def test_weights_begin_in_the_range_of_torchs_layers(kind: str) -> None:
    config, network, _, _ = KINDS[kind]
    torch.manual_seed(0)
    made = network(config(vocab_size=500, hidden_size=40))
    for weights in (made.recurrent.embeddings.weight, made.lm_head.weight):
        assert 0.099 < weights.max().item() <= 0.1 and -0.1 <= weights.min().item() < -0.099
    for weights in made.recurrent.layers[0].parameters():
        assert 0.8 * 40**-0.5 < weights.abs().max().item() <= 40**-0.5
    assert not made.lm_head.bias.any()


@pytest.mark.parametrize("backbone", [Elman(hidden_size=24), Lstm(hidden_size=24, num_hidden_layers=3)])
def test_the_backbone_describes_the_network(backbone: Elman | Lstm, tokenizer: PreTrainedTokenizerFast) -> None:
    described = backbone.config(tokenizer, 70)
    assert type(described) is KINDS[backbone.name][0] and described.vocab_size == len(tokenizer)
    assert (described.hidden_size, described.num_hidden_layers) == (24, backbone.num_hidden_layers)
