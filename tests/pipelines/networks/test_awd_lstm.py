"""AWD-LSTM: torch's own LSTM without its dropouts, and each dropout by itself."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoModel, AutoModelForCausalLM

from pipelines.networks import register
from pipelines.networks.awd_lstm import (
    AwdLstmConfig,
    AwdLstmForCausalLM,
    AwdLstmModel,
    EmbeddingDropout,
    VariationalDropout,
    WeightDropLSTM,
)
from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.activation_regularization import ActivationRegularization
from pipelines.vocabulary import Field, Signal

VOCABULARY, ROWS, LENGTH = 60, 3, 11
NO_DROPOUT = dict.fromkeys(("embedding", "input", "inner", "output", "weight"), 0.0)


def config(**dropouts: float) -> AwdLstmConfig:
    rates = {f"{name}_dropout": rate for name, rate in {**NO_DROPOUT, **dropouts}.items()}
    return AwdLstmConfig(vocab_size=VOCABULARY, hidden_size=8, inner_size=12, num_hidden_layers=3, **rates)


def body(**dropouts: float) -> AwdLstmModel:
    torch.manual_seed(0)
    return AwdLstmModel(config(**dropouts)).double()


@pytest.fixture
def ids() -> torch.Tensor:
    return torch.randint(0, VOCABULARY, (ROWS, LENGTH), generator=torch.Generator().manual_seed(1))


def by_torch(network: AwdLstmModel, ids: torch.Tensor) -> list[torch.Tensor]:
    """The outputs of every layer, by a stack of plain `nn.LSTM` with the same weights."""
    states = [network.embeddings(ids)]
    for layer in network.layers:
        assert isinstance(layer, WeightDropLSTM)
        plain = nn.LSTM(layer.input_size, layer.hidden_size, batch_first=True).double()
        plain.load_state_dict(layer.state_dict())
        states.append(plain(states[-1])[0])
    return states


@pytest.mark.parametrize("training", [True, False])
def test_without_dropout_it_is_a_stack_of_torch_lstms(ids: torch.Tensor, training: bool) -> None:
    network = body().train(training)
    said = network(ids, output_hidden_states=True)
    for mine, theirs in zip(said.hidden_states, by_torch(network, ids), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)
    assert torch.equal(said.last_hidden_state, said.raw) and torch.equal(said.raw, said.hidden_states[-1])


def test_every_dropout_is_off_in_eval(ids: torch.Tensor) -> None:
    still = body(embedding=0.5, input=0.5, inner=0.5, output=0.5, weight=0.5).eval()
    assert torch.equal(still(ids).last_hidden_state, body().eval()(ids).last_hidden_state)


@pytest.mark.parametrize("which", NO_DROPOUT)
def test_every_dropout_is_on_while_training_and_known_to_torch(ids: torch.Tensor, which: str) -> None:
    network = body(**{which: 0.5}).train()
    assert not torch.equal(network(ids).last_hidden_state, network(ids).last_hidden_state)
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    torch.testing.assert_close(network(ids).last_hidden_state, by_torch(network, ids)[-1], atol=1e-12, rtol=0)


@torch.no_grad()
def test_memory_carries_the_state_over_a_cut(ids: torch.Tensor) -> None:
    network = body().eval()
    whole = network(ids)
    first = network(ids[:, :4])
    second = network(ids[:, 4:], memory=first.memory)
    torch.testing.assert_close(second.last_hidden_state, whole.last_hidden_state[:, 4:], atol=1e-12, rtol=0)
    for mine, theirs in zip(second.memory, whole.memory, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-12, rtol=0)
    assert [tuple(part.shape) for part in whole.memory] == [(ROWS, 12)] * 4 + [(ROWS, 8)] * 2


def test_no_gradient_flows_into_what_is_remembered(ids: torch.Tensor) -> None:
    said = body().train()(ids)
    assert said.raw.requires_grad and not any(part.requires_grad for part in said.memory)


@torch.no_grad()
def test_padding_on_the_right_changes_nothing_before_it(ids: torch.Tensor) -> None:
    network = body().eval()
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    padded = ids.masked_fill(mask == 0, 0)
    said, alone = network(padded, mask).last_hidden_state, network(ids[1:2, :6]).last_hidden_state
    torch.testing.assert_close(said[1, :6], alone[0], atol=1e-12, rtol=0)


def test_weight_drop_is_one_mask_on_the_hidden_to_hidden_weights() -> None:
    torch.manual_seed(0)
    layer = WeightDropLSTM(5, 200, 0.3).double().train()
    seen: list[torch.Tensor] = []
    layer.weight_dropout.register_forward_hook(lambda module, given, dropped: seen.append(dropped.detach()))
    states = torch.randn(4, 7, 5).double()
    zeros = torch.zeros(4, 200).double()
    outputs, *_ = layer.run_steps(states, (zeros, zeros))
    (dropped,) = seen  # drawn once for all rows and all steps
    kept = dropped != 0
    # 160 000 draws: five standard deviations of their share are 0.006
    assert kept.double().mean().item() == pytest.approx(0.7, abs=0.006)
    torch.testing.assert_close(dropped[kept], layer.weight_hh_l0.detach()[kept] / 0.7, atol=1e-12, rtol=0)
    plain = nn.LSTM(5, 200, batch_first=True).double()
    plain.load_state_dict({**layer.state_dict(), "weight_hh_l0": dropped})
    torch.testing.assert_close(outputs, plain(states)[0], atol=1e-12, rtol=0)
    layer.run_steps(states, (zeros, zeros))
    assert not torch.equal(seen[0], seen[1]), "the next batch has a mask of its own"
    outputs.sum().backward()
    assert layer.weight_hh_l0.grad is not None and bool((layer.weight_hh_l0.grad[~kept] == 0).all())


def test_variational_dropout_is_the_same_at_all_tokens_of_a_row() -> None:
    torch.manual_seed(0)
    dropped = VariationalDropout(0.4).train()(torch.ones(50, 9, 400))
    assert torch.equal(dropped, dropped[:, :1].expand(-1, 9, -1))
    assert not torch.equal(dropped[0], dropped[1])
    # 20 000 draws: five standard deviations of their share are 0.017; what is kept is scaled so that the mean stays
    assert (dropped == 0).float().mean().item() == pytest.approx(0.4, abs=0.018)
    torch.testing.assert_close(dropped[dropped != 0].mean(), torch.tensor(1 / 0.6))


def test_embedding_dropout_takes_a_word_out_wherever_it_stands() -> None:
    torch.manual_seed(0)
    table = nn.Embedding(20000, 4)
    ids = torch.arange(20000).repeat(2, 1)
    dropped = EmbeddingDropout(0.1).train().look_up(ids, table)
    assert torch.equal(dropped[0], dropped[1])
    gone = (dropped[0] == 0).all(-1)
    torch.testing.assert_close(dropped[0][~gone], table.weight.detach()[~gone] / 0.9)
    # five standard deviations of a share of 20 000 draws are 0.0106
    assert gone.float().mean().item() == pytest.approx(0.1, abs=0.011)


def test_weights_begin_as_the_paper_says() -> None:
    torch.manual_seed(0)
    network = AwdLstmForCausalLM(AwdLstmConfig(vocab_size=500, hidden_size=40, inner_size=90, num_hidden_layers=2))
    table = network.awd_lstm.embeddings.weight
    assert 0.099 < table.max().item() <= 0.1 and -0.1 <= table.min().item() < -0.099
    for layer, width in zip(network.awd_lstm.layers, (90, 40), strict=True):
        for weights in layer.parameters():
            assert 0.9 / math.sqrt(width) < weights.abs().max().item() <= 1 / math.sqrt(width)
    assert network.lm_head.weight is table and not network.lm_head.bias.any()


@torch.no_grad()
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_saved_folder_opens_by_the_auto_classes(ids: torch.Tensor, attention: str, tmp_path: Path) -> None:
    register()
    register()
    chosen = config(weight=0.5)
    chosen._attn_implementation = attention
    network = AutoModelForCausalLM.from_config(chosen).eval()
    network.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert isinstance(again, AwdLstmForCausalLM) and again.lm_head.weight is again.get_input_embeddings().weight
    assert torch.equal(again(ids).logits, network(ids).logits)
    opened = AutoModel.from_pretrained(tmp_path)
    assert isinstance(opened, AwdLstmModel) and opened.layers[0].weight_dropout.p == 0.5
    assert torch.equal(opened(ids).last_hidden_state, network(ids).last_hidden_state)


def test_the_language_model_scores_with_its_own_embeddings(ids: torch.Tensor) -> None:
    torch.manual_seed(0)
    network = AwdLstmForCausalLM(config()).double().eval()
    said = network(ids)
    expected = said.last_hidden_state @ network.awd_lstm.embeddings.weight.T + network.lm_head.bias
    torch.testing.assert_close(said.logits, expected, atol=1e-12, rtol=0)


def test_the_backbone_describes_the_paper(tokenizer) -> None:  # type: ignore[no-untyped-def]
    described = AwdLstm().config(tokenizer, 70)
    assert isinstance(described, AwdLstmConfig) and described.vocab_size == len(tokenizer)
    assert (described.hidden_size, described.inner_size, described.num_hidden_layers) == (400, 1150, 3)
    rates = [getattr(described, f"{name}_dropout") for name in NO_DROPOUT]
    assert rates == [0.1, 0.4, 0.3, 0.4, 0.5]


@pytest.mark.parametrize("padded", [False, True])
def test_activation_regularization_is_the_mean_square_of_size_and_change(padded: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    dropped, raw = torch.randn(2, 2, 5, 3, dtype=torch.float64, generator=generator)
    lengths = (5, 3) if padded else (5, 5)
    batch = {}
    if padded:
        batch[Field.ATTENTION_MASK] = torch.tensor([[1] * n + [0] * (5 - n) for n in lengths])
    step = TrainingStep(batch, {Signal.ACTIVATIONS: (dropped, raw)}, nn.Identity(), lambda *_: {})
    terms = ActivationRegularization(size=2.0, change=1.0).loss(step)
    size = [dropped[row, at, unit] ** 2 for row in (0, 1) for at in range(lengths[row]) for unit in range(3)]
    change = [
        (raw[row, at + 1, unit] - raw[row, at, unit]) ** 2
        for row in (0, 1)
        for at in range(lengths[row] - 1)
        for unit in range(3)
    ]
    # the objective sums in float32
    assert float(terms["activation_size"]) == pytest.approx(2 * float(sum(size)) / len(size), rel=1e-6)
    assert float(terms["activation_change"]) == pytest.approx(float(sum(change)) / len(change), rel=1e-6)
