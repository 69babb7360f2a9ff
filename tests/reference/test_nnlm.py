"""The feed-forward language model and the neural bigram, against the equations of their papers in float64."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

from pipelines.networks.neural_bigram import NeuralBigramConfig, NeuralBigramForCausalLM
from pipelines.networks.nnlm import NnlmConfig, NnlmForCausalLM
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.vocabulary import Field

SIZE, ROWS, LENGTH = 40, 3, 9


@pytest.fixture
def ids() -> Tensor:
    return torch.randint(0, SIZE, (ROWS, LENGTH), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("order", [2, 3, 5])
@torch.no_grad()
def test_scores_are_bengios_equation_one(ids: Tensor, order: int, direct: bool) -> None:
    torch.manual_seed(0)
    config = NnlmConfig(vocab_size=SIZE, order=order, embedding_size=6, inner_size=7, direct=direct)
    network = NnlmForCausalLM(config).double().eval()
    network.nnlm.start.copy_(torch.randn(6))
    table, start = network.nnlm.embeddings.weight.numpy(), network.nnlm.start.numpy()
    h, d = (one.numpy() for one in (network.nnlm.hidden.weight, network.nnlm.hidden.bias))
    output, b = network.lm_head.weight.numpy(), network.lm_head.bias.numpy()
    u, w = output[:, :7], output[:, 7:]  # of the tanh layer, and of the direct connections
    assert w.shape == (SIZE, 6 * (order - 1) * direct)
    scores = network(ids).logits.numpy()
    for row in range(ROWS):
        for at in range(LENGTH):
            words = [ids[row, at - back].item() if at >= back else None for back in range(order - 1)]
            x = np.concatenate([start if word is None else table[int(word)] for word in words])
            expected = b + u @ np.tanh(d + h @ x) + (w @ x if direct else 0)
            np.testing.assert_allclose(scores[row, at], expected, atol=1e-12)


@torch.no_grad()
def test_padding_on_the_right_changes_nothing_before_it(ids: Tensor) -> None:
    torch.manual_seed(0)
    network = NnlmForCausalLM(NnlmConfig(vocab_size=SIZE)).double().eval()
    padded = torch.cat([ids[:, :5], torch.zeros_like(ids[:, 5:])], 1)
    torch.testing.assert_close(network(padded).logits[:, :5], network(ids[:, :5]).logits, atol=1e-12, rtol=0)


def test_a_neural_bigram_begins_uniform_and_has_a_weight_for_each_pair(ids: Tensor) -> None:
    network = NeuralBigramForCausalLM(NeuralBigramConfig(vocab_size=SIZE))
    assert sum(parameter.numel() for parameter in network.parameters()) == SIZE * SIZE + SIZE
    assert not network(ids).logits.any()


def test_a_neural_bigram_that_has_converged_is_the_relative_frequency() -> None:
    """One softmax for each word has its maximum of likelihood at the counts, which is the closed form."""
    torch.manual_seed(0)
    text = torch.randint(0, 5, (1, 400), generator=torch.Generator().manual_seed(2))
    network = NeuralBigramForCausalLM(NeuralBigramConfig(vocab_size=5)).double()
    head, objective = CausalLMHead(), CausalLM()
    batch = {Field.INPUT_IDS: text}
    optimizer = torch.optim.LBFGS(network.parameters(), max_iter=200, tolerance_grad=1e-10)

    def loss() -> Tensor:
        optimizer.zero_grad()
        signals = head.signals(network, batch, objective.needs_signals)
        result = objective.loss(TrainingStep(batch, signals, network, lambda *_: {}))["causal_lm"]
        result.backward()
        return result

    optimizer.step(loss)
    words = text[0].tolist()
    pairs, singles = Counter(pairwise(words)), Counter(words[:-1])
    probabilities = network(torch.arange(5)[None]).logits[0].softmax(-1)
    expected = torch.tensor([[pairs[a, b] / singles[a] for b in range(5)] for a in range(5)], dtype=torch.float64)
    torch.testing.assert_close(probabilities.detach(), expected, atol=1e-4, rtol=0)
