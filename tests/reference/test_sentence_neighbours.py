"""Skip-Thought's decoder and Quick-Thought's loss against their equations in float64; a GRU against its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pipelines.networks.bilstm import BilstmConfig
from pipelines.networks.bilstm import register_auto_classes as register_bilstm
from pipelines.networks.gru import GruConfig, GruModel, register_auto_classes
from pipelines.parts.heads.neighbour_encoders import NEIGHBOURS, SOURCE_IDS, NeighbourEncodersHead
from pipelines.parts.heads.recurrent_decoder import RecurrentDecoderHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.quick_thoughts import QuickThoughts
from pipelines.vocabulary import Field, Signal

VOCABULARY, WIDTH = 20, 6
SOURCES = torch.tensor([[3, 8, 5, -100], [9, 4, 7, 11], [6, -100, -100, -100]])
TARGETS = torch.tensor([[2, 9, 4], [12, 13, -100], [-100, -100, -100]])
BATCH: dict[Field, Any] = {Field.INPUT_IDS: torch.full((3, 9), 1), SOURCE_IDS: SOURCES, Field.TARGET_IDS: TARGETS}
Vector = NDArray[np.float64]


def sigmoid(values: Vector) -> Vector:
    return 1 / (1 + np.exp(-values))


def gru(weights: dict[str, Vector], prefix: str, inputs: Vector) -> Vector:
    """[L, H]: the states of a GRU over `inputs` [L, …]; torch's gates are in the order r, z, n."""
    into, back, bias, bias_back = (
        weights[f"{prefix}.{one}_l0"] for one in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    state, states = np.zeros(back.shape[1]), []
    for one in inputs:
        read, kept = np.split(into @ one + bias, 3), np.split(back @ state + bias_back, 3)
        reset, update = sigmoid(read[0] + kept[0]), sigmoid(read[1] + kept[1])
        state = update * state + (1 - update) * np.tanh(read[2] + reset * kept[2])
        states.append(state)
    return np.stack(states)


def weights_of(network: torch.nn.Module) -> dict[str, Vector]:
    return {name: value.detach().double().numpy() for name, value in network.state_dict().items()}


def config() -> GruConfig:
    register_auto_classes()
    torch.manual_seed(0)
    return GruConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, pad_token_id=0)


@torch.no_grad()
def test_a_gru_computes_its_equations() -> None:
    network = GruModel(config()).double()
    states = network(SOURCES[1:2]).last_hidden_state[0].numpy()
    weights = weights_of(network)
    assert states == pytest.approx(gru(weights, "layers.0", weights["embeddings.weight"][SOURCES[1].numpy()]), abs=1e-9)


@torch.no_grad()
def test_a_decoder_reads_the_vector_beside_every_word() -> None:
    head = RecurrentDecoderHead(size=5)
    network = head.build(config(), None).eval()
    logits = head.signals(network, BATCH, frozenset({Signal.TARGET_LOGITS}))[Signal.TARGET_LOGITS].numpy()
    weights = weights_of(network)
    table = weights["recurrent.embeddings.weight"]
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        vector = gru(weights, "recurrent.layers.0", table[source[source >= 0].numpy()])[-1]
        read = [0, *target[:-1].clamp(min=0).tolist()]
        decoded = gru(weights, "decoder", np.stack([np.concatenate([table[word], vector]) for word in read]))
        wanted = decoded @ weights["output.weight"].T + weights["output.bias"]
        assert logits[row] == pytest.approx(wanted, abs=1e-5)


@torch.no_grad()
def test_attention_is_a_softmax_over_the_tokens_of_the_source() -> None:
    """c = Σ a s, a = softmax((W h) · s), h̃ = tanh(W [c; h]) (Luong et al. 2015, §3.1), over a BiLSTM."""
    register_bilstm()
    torch.manual_seed(0)
    encoder = BilstmConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, embedding_size=4, pad_token_id=0)
    head = RecurrentDecoderHead(size=5, source="attention", pooling="mean")
    network: Any = head.build(encoder, None).eval()
    logits = head.signals(network, BATCH, frozenset({Signal.TARGET_LOGITS}))[Signal.TARGET_LOGITS].numpy()
    weights = weights_of(network)
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
        states = network.base_model(source[source >= 0].unsqueeze(0)).last_hidden_state
        first = torch.tanh(network.first(states.mean(1))).unsqueeze(0)
        words = network.base_model.embeddings(torch.tensor([[0, *target[:-1].clamp(min=0).tolist()]]))
        decoded = network.decoder(words, first)[0][0].numpy()
        seen = states[0].double().numpy()
        for at, h in enumerate(decoded):
            energies = seen @ (weights["query.weight"] @ h + weights["query.bias"])
            attention = np.exp(energies) / np.exp(energies).sum()
            mixed = np.tanh(
                weights["combined.weight"] @ np.concatenate([attention @ seen, h]) + weights["combined.bias"]
            )
            wanted = weights["output.weight"] @ mixed + weights["output.bias"]
            assert logits[row, at] == pytest.approx(wanted, abs=1e-5)


def test_only_differently_named_decoders_are_different() -> None:
    assert RecurrentDecoderHead(writes="next") == RecurrentDecoderHead(writes="next")
    assert RecurrentDecoderHead(writes="next") != RecurrentDecoderHead(writes="previous")


def encoded(weights: dict[str, Vector], prefix: str, rows: torch.Tensor) -> list[Vector]:
    """The last state of each row that has tokens, by the encoder whose weights begin with `prefix`."""
    table = weights[f"{prefix}recurrent.embeddings.weight"]
    texts = [row[row >= 0].numpy() for row in rows]
    return [gru(weights, f"{prefix}recurrent.layers.0", table[text])[-1] for text in texts if len(text)]


def test_the_neighbour_is_one_of_the_candidates_of_the_batch() -> None:
    """−log exp(f(s) · g(n)) / Σ exp(f(s) · g(c)) over the rows that have a neighbour (§3, eq. 1)."""
    head = NeighbourEncodersHead()
    network: Any = head.build(config(), None).eval()
    signals = head.signals(network, BATCH, frozenset({Signal.POOLED, NEIGHBOURS}))
    weights = weights_of(network)
    f, g = encoded(weights, "", SOURCES), encoded(weights, "second.", TARGETS)
    assert not np.allclose(f[0][:3], g[0][:3]), "encoders of their own"
    products = np.asarray([[one @ other for other in g] for one in f[:2]])
    wanted = -np.mean([products[at, at] - np.log(np.exp(products[at]).sum()) for at in range(2)])
    (term,) = QuickThoughts().loss(TrainingStep(BATCH, signals, network, lambda *_: {})).values()
    assert float(term.detach()) == pytest.approx(float(wanted), abs=1e-5)
    term.backward()
    assert all(one.grad is not None for name, one in network.named_parameters() if "embeddings" in name)


def test_without_any_neighbour_the_loss_is_zero() -> None:
    head, batch = NeighbourEncodersHead(), {**BATCH, Field.TARGET_IDS: torch.full_like(TARGETS, -100)}
    network = head.build(config(), None)
    signals = head.signals(network, batch, frozenset({Signal.POOLED, NEIGHBOURS}))
    (term,) = QuickThoughts().loss(TrainingStep(batch, signals, network, lambda *_: {})).values()
    assert float(term.detach()) == 0 and bool(term.requires_grad)
