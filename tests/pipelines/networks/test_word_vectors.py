"""Word vectors: trees, scores and losses against the papers' equations in float64."""

from __future__ import annotations

import heapq
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModel

from pipelines.errors import RecipeError
from pipelines.networks import register
from pipelines.networks.huffman import paths
from pipelines.networks.word_vectors import NoisePredictor, PathPredictor, WordVectorsConfig, WordVectorsModel
from pipelines.parts.backbones.word_vectors import WordVectorsBackbone
from pipelines.parts.heads import Head
from pipelines.parts.heads.noise_prediction import NoisePredictionHead
from pipelines.parts.heads.path_prediction import PathPredictionHead
from pipelines.parts.objectives import Objective, TrainingStep
from pipelines.parts.objectives.hierarchical_softmax import HierarchicalSoftmax
from pipelines.parts.objectives.negative_sampling import NegativeSampling
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents

VOCABULARY, WIDTH = 40, 6
ARCHITECTURES = ("skip_gram", "cbow")


def real_counts() -> list[int]:
    return [count for _, count in Counter(" ".join(documents("json", "logging")).lower().split()).most_common()]


def config(architecture: str = "skip_gram") -> WordVectorsConfig:
    return WordVectorsConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        token_counts=real_counts()[:VOCABULARY],
        word_architecture=architecture,
    )


def filled(network: nn.Module) -> nn.Module:
    """In float64, with no weight at zero."""
    torch.manual_seed(0)
    for weights in network.double().parameters():
        nn.init.normal_(weights)
    return network


def windows() -> tuple[Tensor, Tensor, Tensor]:
    """Centres [4], contexts [4, 3] with gaps, and negatives [4, 2], one of which is its own centre."""
    contexts = torch.tensor([[3, 4, -1], [7, -1, 9], [-1, -1, -1], [1, 1, 2]])
    return torch.tensor([5, 6, 8, 9]), contexts, torch.tensor([[11, 12], [13, 6], [14, 15], [16, 16]])


def inputs_by_hand(table: Tensor, contexts: Tensor, architecture: str) -> list[tuple[int, Tensor]]:
    """(window, vector) of each prediction."""
    words = [[word for word in window.tolist() if word >= 0] for window in contexts]
    if architecture == "cbow":
        return [(row, table[window].mean(0)) for row, window in enumerate(words) if window]
    return [(row, table[word]) for row, window in enumerate(words) for word in window]


def loss_of(objective: Objective, signals: dict[Signal, Tensor]) -> Tensor:
    step = TrainingStep({}, signals, nn.Identity(), lambda *_: {})  # type: ignore[arg-type]
    (value,) = objective.loss(step).values()
    return value


@pytest.mark.parametrize("counts", [real_counts(), [5], [2, 2], [1] * 33, [2**i for i in range(20)], [0, 0, 7, 1]])
def test_the_tree_is_as_short_as_huffmans(counts: list[int]) -> None:
    seen = [max(count, 1) for count in counts]
    heap, optimal = list(seen), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        optimal += joined
        heapq.heappush(heap, joined)
    nodes, turns = paths(counts)
    depth = (turns >= 0).sum(1)
    assert int((depth * np.asarray(seen)).sum()) == optimal
    # a prefix code in which every path begins at the root and names one node a prefix
    codes = ["".join(map(str, row[:d])) for row, d in zip(turns.tolist(), depth, strict=True)]
    assert not any(a != b and b.startswith(a) for a in codes[:60] for b in codes) and len(set(codes)) == len(codes)
    named = {code[:at]: nodes[word, at] for word, code in enumerate(codes) for at in range(len(code))}
    assert all(named[code[:at]] == nodes[word, at] for word, code in enumerate(codes) for at in range(len(code)))
    assert sorted(named.values()) == list(range(len(counts) - 1))
    assert bool(((nodes == -100) == (turns == -100)).all())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_negative_sampling_is_the_papers_equation(architecture: str) -> None:
    network = filled(NoisePredictor(config(architecture)))
    assert isinstance(network, NoisePredictor)
    centers, contexts, negatives = windows()
    head = NoisePredictionHead(architecture=architecture)
    batch = {Field.CENTERS: centers, Field.CONTEXTS: contexts, Field.NEGATIVES: negatives}
    value = loss_of(NegativeSampling(), head.signals(network, batch, head.provides))
    mine = torch.autograd.grad(value, [*network.parameters()])

    table, outputs = network.word_vectors.embeddings.weight, network.outputs.weight
    predictions = inputs_by_hand(table, contexts, architecture)
    total = torch.zeros((), dtype=torch.float64)
    for window, vector in predictions:
        total = total - torch.log(torch.sigmoid(outputs[centers[window]] @ vector))
        for noise in negatives[window]:
            if noise != centers[window]:
                total = total - torch.log(torch.sigmoid(-outputs[noise] @ vector))
    expected = total / len(predictions)
    # the objective sums in float32
    assert float(value.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    for got, wanted in zip(mine, torch.autograd.grad(expected, [*network.parameters()]), strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_hierarchical_softmax_is_a_distribution_over_the_vocabulary(architecture: str) -> None:
    chosen = config(architecture)
    assert chosen.token_counts is not None
    network = filled(PathPredictor(chosen, chosen.token_counts))
    every = torch.arange(VOCABULARY)
    contexts = torch.tensor([[3, 4, -1]]).expand(VOCABULARY, -1)
    scores, turns = network(every, contexts)
    # p(word | window) is the product of its turns' probabilities (arXiv:1310.4546, eq. 3)
    steps = torch.where(turns == 1, torch.sigmoid(scores), torch.sigmoid(-scores)).masked_fill(turns < 0, 1)
    chance = steps.prod(1).view(VOCABULARY, -1)  # [V, predictions]
    torch.testing.assert_close(chance.sum(0), torch.ones_like(chance[0]), atol=1e-10, rtol=0)
    value = loss_of(HierarchicalSoftmax(), {Signal.PATH_LOGITS: scores, Signal.PATH_TURNS: turns})
    expected = -chance.log().mean()
    assert float(value.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    weights = [*network.parameters()]
    for got, wanted in zip(
        torch.autograd.grad(value, weights, retain_graph=True), torch.autograd.grad(expected, weights), strict=True
    ):
        torch.testing.assert_close(got, wanted, atol=1e-6, rtol=1e-6)


def test_the_inputs_are_each_neighbour_or_their_mean() -> None:
    _, contexts, _ = windows()
    for architecture in ARCHITECTURES:
        network = filled(NoisePredictor(config(architecture)))
        assert isinstance(network, NoisePredictor)
        vectors, real = network.inputs(contexts)
        expected = torch.stack(
            [v for _, v in inputs_by_hand(network.word_vectors.embeddings.weight, contexts, architecture)]
        )
        torch.testing.assert_close(vectors[real], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", [NoisePredictionHead, PathPredictionHead])
def test_a_folder_opens_as_a_table_and_the_head_takes_its_weights_back(kind: type[Head], tmp_path: Path) -> None:
    register()
    head = kind()
    network = filled(head.build(config(), None)).float()
    network.save_pretrained(tmp_path)  # type: ignore[operator]
    body = AutoModel.from_pretrained(tmp_path)
    assert isinstance(body, WordVectorsModel)
    ids = torch.tensor([[1, 2], [3, 0]])
    found = body(ids, attention_mask=torch.tensor([[1, 1], [1, 0]]), output_hidden_states=True)
    assert torch.equal(found.last_hidden_state, network.get_input_embeddings()(ids))  # type: ignore[operator]
    assert len(found.hidden_states) == 1
    again = head.build(body.config, None)
    again.load_state_dict(network.state_dict())
    batch = dict(zip((Field.CENTERS, Field.CONTEXTS, Field.NEGATIVES), windows(), strict=True))
    said, repeated = (head.signals(one, batch, head.provides) for one in (network, again))  # type: ignore[arg-type]
    assert all(torch.equal(said[signal], repeated[signal]) for signal in head.provides)


def test_a_tree_without_counts_is_refused(tokenizer) -> None:  # type: ignore[no-untyped-def]
    described = WordVectorsBackbone(hidden_size=8).config(tokenizer, 16)
    with pytest.raises(RecipeError, match="use the tokenizer words"):
        PathPredictionHead().build(described, None)
    assert NoisePredictionHead().build(described, None).config.vocab_size == len(tokenizer)
