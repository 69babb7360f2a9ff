"""The peer of the recurrent language model: the same function as ours, the schedule of the paper, classifiers that
learn."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from benchmarks.peers.awd_lstm import PlainAwdLstm, slanted_triangle, train_language_model
from benchmarks.peers.awd_lstm_classifier import Labelled, accuracy, train_classifier
from benchmarks.recurrent_parity import perplexity
from pipelines.networks.awd_lstm import AwdLstmConfig, AwdLstmForCausalLM
from pipelines.parts.schedules import Schedule

SMALL = AwdLstmConfig(
    vocab_size=30, hidden_size=8, inner_size=12, num_hidden_layers=2, embedding_dropout=0.0, input_dropout=0.0,
    inner_dropout=0.0, output_dropout=0.0, weight_dropout=0.0,
)  # fmt: skip


def with_weights_of(ours: AwdLstmForCausalLM) -> PlainAwdLstm:
    """The peer with our weights."""
    peer, weights = PlainAwdLstm(SMALL), ours.state_dict()
    own = {"embeddings.weight": weights["awd_lstm.embeddings.weight"], "bias": weights["lm_head.bias"]}
    layers = {name: weights[f"awd_lstm.{name}"] for name in peer.state_dict() if name.startswith("layers.")}
    peer.load_state_dict(own | layers)
    return peer.eval()


def test_the_peer_computes_what_ours_does_and_carries_its_state() -> None:
    torch.manual_seed(0)
    ours = AwdLstmForCausalLM(SMALL).train(False)
    torch.nn.init.normal_(ours.lm_head.bias)
    peer = with_weights_of(ours)
    ids = torch.randint(30, (3, 10))
    with torch.no_grad():
        whole = ours(ids).logits
        first, _, state = peer(ids[:, :4])
        second, _, _ = peer(ids[:, 4:], state)
        apart = peer.logits(torch.cat([first, second], dim=1))
    torch.testing.assert_close(apart, whole, rtol=1e-5, atol=1e-6)


def test_dropout_masks_are_locked_over_a_row_and_words_are_dropped_whole() -> None:
    torch.manual_seed(0)
    config = AwdLstmConfig.from_dict({**SMALL.to_dict(), "output_dropout": 0.5})
    states, raw, _ = PlainAwdLstm(config).train()(torch.randint(30, (3, 10)))
    dropped = states == 0
    assert dropped.any() and (dropped == dropped[:, :1]).all(), "the same elements at every token"
    torch.testing.assert_close(states[~dropped], 2 * raw[~dropped])


def test_the_schedule_is_that_of_the_paper_and_of_ours() -> None:
    ours = Schedule.model_validate("slanted_triangular")
    for step in range(200):
        assert slanted_triangle(step, 200) == pytest.approx(ours.factor(step, 200))
    assert slanted_triangle(20, 200) == 1 and slanted_triangle(0, 200) == 1 / 32


def test_perplexity_is_that_of_all_tokens_but_the_first_of_each_row() -> None:
    uniform = torch.zeros(30)
    seen: list[int] = []

    def read(ids: Tensor, state: object) -> tuple[Tensor, object]:
        seen.append(ids.numel())
        assert (state is None) == (len(seen) == 1)
        return uniform.expand(*ids.shape, 30), "carried"

    tokens = torch.arange(16 * 150) % 30
    assert perplexity(read, tokens) == pytest.approx(30)
    assert sum(seen) == 16 * 149 and len(seen) == math.ceil(149 / 70)


def test_it_learns_a_text_and_a_classifier_goes_on_from_there() -> None:
    torch.manual_seed(0)
    # a cycle of ten words, which one row continues from the row before
    stream = (torch.arange(4 * 8 * 400) % 10 + 5).view(4, -1)
    rows = [stream[:, at : at + 8] for at in range(0, stream.shape[1], 8)]
    config = AwdLstmConfig.from_dict({**SMALL.to_dict(), "hidden_size": 32, "inner_size": 48})
    network = train_language_model(config, rows, [step == 0 for step in range(len(rows))], seed=0)

    def read(ids: Tensor, state: object) -> tuple[Tensor, object]:
        states, _, after = network(ids, state)
        return network.logits(states), after

    assert perplexity(read, stream.flatten()) < 2, "of thirty words, ten of which occur, each after the same"
    examples = Labelled([[5 + at % 3, 6, 7] if at % 2 else [12, 13, 14 - at % 3] for at in range(40)], [0, 1] * 20)
    classifier = train_classifier(network, examples, examples, classes=2, epochs=6, batch=8, seed=0)
    assert accuracy(classifier, examples) > 0.9
