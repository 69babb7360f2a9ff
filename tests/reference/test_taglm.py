"""TagLM against its equations in float64: [h₁, LM] is what the second layer reads (Peters et al. 2017, eq. 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from transformers import BertConfig

from pipelines.networks.taglm import TaglmConfig, TaglmModel
from pipelines.parts.backbones.taglm import Taglm

LENGTHS = (5, 3)
WIDTH, EMBEDDING, READ = 6, 4, 8
Weights = dict[str, NDArray[np.float64]]


def reader() -> dict[str, Any]:
    """The settings of a frozen BERT that is read at its top layer, two of its tokens for each word."""
    config = BertConfig(vocab_size=30, hidden_size=READ, num_hidden_layers=1, num_attention_heads=2,
                        intermediate_size=8, max_position_embeddings=16)  # fmt: skip
    return {"config": config.to_dict(), "layers": "top", "subwords": "mean", "trains": False, "dropout": 0.0,
            "widths": [READ, READ], "length": 16}  # fmt: skip


def network(features: int = 1, layers: int = 2) -> TaglmModel:
    torch.manual_seed(0)
    config = TaglmConfig(vocab_size=30, embedding_size=EMBEDDING, hidden_size=WIDTH, num_hidden_layers=layers,
                         features=[reader() for _ in range(features)] or None)  # fmt: skip
    return TaglmModel(config).double().eval()


def batch(features: int = 1) -> dict[str, torch.Tensor]:
    random = np.random.default_rng(1)
    ids, mask = np.zeros((2, 5), dtype=np.int64), np.zeros((2, 5), dtype=np.int64)
    read, read_mask = np.zeros((2, features, 10), dtype=np.int64), np.zeros((2, features, 10), dtype=np.int64)
    words = np.full((2, features, 5, 2), -1, dtype=np.int64)
    for row, length in enumerate(LENGTHS):
        ids[row, :length], mask[row, :length] = random.integers(1, 30, length), 1
        read[row, :, : 2 * length], read_mask[row, :, : 2 * length] = random.integers(1, 30, 2 * length), 1
        words[row, :, :length] = np.stack([2 * np.arange(length), 2 * np.arange(length) + 1], axis=1)
    given = {"input_ids": ids, "attention_mask": mask}
    given |= {"feature_ids": read, "feature_mask": read_mask, "feature_words": words} if features else {}
    return {name: torch.from_numpy(value) for name, value in given.items()}


def lstm(weights: Weights, prefix: str, suffix: str, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """[L, H / 2]: the outputs of an LSTM of one direction over `inputs` [L, …]."""
    into, back = weights[f"{prefix}.weight_ih_l0{suffix}"], weights[f"{prefix}.weight_hh_l0{suffix}"]
    bias = weights[f"{prefix}.bias_ih_l0{suffix}"] + weights[f"{prefix}.bias_hh_l0{suffix}"]
    hidden = cell = np.zeros(back.shape[1])
    outputs = []
    for one in inputs:
        i, f, g, o = np.split(into @ one + back @ hidden + bias, 4)
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        cell = f * cell + i * np.tanh(g)
        hidden = o * np.tanh(cell)
        outputs.append(hidden)
    return np.stack(outputs)


def bilstm(weights: Weights, prefix: str, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    ahead, back = lstm(weights, prefix, "", inputs), lstm(weights, prefix, "_reverse", inputs[::-1])[::-1]
    return np.concatenate([ahead, back], axis=1)


@pytest.mark.parametrize("features", [0, 1, 2])
@torch.no_grad()
def test_language_models_stand_beside_the_first_layer(features: int) -> None:
    built, given = network(features), batch(features)
    outputs = built(**given, output_hidden_states=True)
    weights = {name: value.numpy() for name, value in built.state_dict().items()}
    for row, length in enumerate(LENGTHS):
        embedded = weights["embeddings.weight"][given["input_ids"][row, :length]]
        first = bilstm(weights, "layers.0", embedded)
        beside = [first]
        for number, one in enumerate(built.readers):
            ids = given["feature_ids"][row : row + 1, number, : 2 * length]
            top = one.encoder(input_ids=ids).last_hidden_state[0].numpy()
            beside.append((top[0::2] + top[1::2]) / 2)
        wanted = bilstm(weights, "layers.1", np.concatenate(beside, axis=1))
        # states that were kept may be in half precision, so that what is read is float32
        assert outputs.last_hidden_state[row, :length].numpy() == pytest.approx(wanted, abs=1e-6)
        assert outputs.hidden_states[1][row, :length].numpy() == pytest.approx(first, abs=1e-9)
        assert not outputs.last_hidden_state[row, length:].any(), "padding has a state"
    assert weights["layers.1.weight_ih_l0"].shape[1] == WIDTH + features * READ


def test_kept_states_stand_in_place_of_the_network_and_stay_without_gradient() -> None:
    built, given = network().train(), batch()
    read = built.readers[0].states(*(given[f"feature_{name}"][:, 0] for name in ("ids", "mask", "words")))
    built.eval()
    assert not built.readers[0].encoder.training
    from_states = built(given["input_ids"], given["attention_mask"], feature_states=(read,)).last_hidden_state
    assert torch.allclose(from_states, built(**given).last_hidden_state)
    from_states.sum().backward()
    assert all(weight.grad is None for weight in built.readers[0].encoder.parameters())
    assert all(weight.grad is not None for layer in built.layers for weight in layer.parameters())


def test_a_third_layer_reads_the_second_alone() -> None:
    assert [layer.input_size for layer in network(layers=3).layers] == [EMBEDDING, WIDTH + READ, WIDTH]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"num_hidden_layers": 1}, "greater than or equal to 2"), ({"hidden_size": 25}, "an even number")],
)
def test_a_tagger_that_cannot_be_is_refused(options: dict[str, int], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Taglm(**options)
