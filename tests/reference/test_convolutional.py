"""The convolutional network against its equation in float64, written out token by token, and its prediction head."""

from __future__ import annotations

import numpy as np
import torch

from pipelines.networks.convolutional import ConvolutionalConfig, ConvolutionalModel
from pipelines.networks.masked_token_predictor import MaskedTokenPredictor
from pipelines.parts.heads.masked_lm_on_states import MaskedLMOnStatesHead
from pipelines.vocabulary import Field, Signal

SIZES = {"vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 2, "window": 3}


def normed(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@torch.no_grad()
def test_layers_are_those_of_the_paper_and_padding_is_nothing() -> None:
    torch.manual_seed(0)
    model = ConvolutionalModel(ConvolutionalConfig(**SIZES, initializer_range=1.0)).double().eval()
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    ids = np.asarray([3, 7, 7, 1, 29])
    states = normed(weights["embeddings.weight"][ids])
    for layer in range(2):
        kernel = weights[f"layers.{layer}.convolution.weight"]  # [2 H, H, window]
        around = np.pad(states, ((1, 1), (0, 0)))
        both = np.asarray(
            [sum(kernel[:, :, k] @ around[t + k] for k in range(3)) for t in range(len(ids))], dtype=np.float64
        )
        values, gates = both[:, :8], both[:, 8:]
        states = normed(states + values / (1 + np.exp(-gates)))
    alone = model(torch.from_numpy(ids)[None]).last_hidden_state[0].numpy()
    np.testing.assert_allclose(alone, states, atol=1e-12)
    padded = torch.from_numpy(np.concatenate([ids, [0, 0, 0]]))[None]
    mask = torch.tensor([[1] * 5 + [0] * 3])
    np.testing.assert_allclose(model(padded, mask).last_hidden_state[0, :5].numpy(), states, atol=1e-12)


@torch.no_grad()
def test_masked_positions_are_gathered_before_the_projection() -> None:
    torch.manual_seed(0)
    head = MaskedLMOnStatesHead()
    network = head.build(ConvolutionalConfig(**SIZES), None).eval()
    assert isinstance(network, MaskedTokenPredictor)
    ids, positions = torch.randint(30, (3, 6)), torch.tensor([1, 7, 17])
    batch = {Field.INPUT_IDS: ids, Field.MASKED_POSITIONS: positions}
    logits = head.signals(network, batch, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
    torch.testing.assert_close(logits, network(ids).flatten(0, 1)[positions])
