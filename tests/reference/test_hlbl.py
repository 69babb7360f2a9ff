"""The log-bilinear model and its trees against their equations in float64 (Mnih & Hinton 2007, §5; 2008, §3 and §4)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from pipelines.errors import RecipeError
from pipelines.networks import register
from pipelines.networks.log_bilinear import LogBilinearConfig, LogBilinearForCausalLM, LogBilinearModel
from pipelines.networks.tree_softmax import TreeSoftmaxLM
from pipelines.networks.vocabulary_loss import IGNORED
from pipelines.networks.word_trees import (
    LEAST_SHARE,
    WordTree,
    depths,
    halves,
    learned_tree,
    log_odds,
    random_tree,
    tree_paths,
)
from pipelines.parts.backbones.log_bilinear import LogBilinear
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.parts.heads.tree_lm import TREE_STATES, TreeLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.tree_lm import TreeLM
from pipelines.vocabulary import Field, Signal

SIZE, WIDTH, ORDER = 11, 5, 4
IDS = torch.tensor([[3, 1, 7, 7, 10, 2], [5, 5, 0, 9, 4, 8]])


def config(**options: Any) -> LogBilinearConfig:
    return LogBilinearConfig(vocab_size=SIZE, hidden_size=WIDTH, order=ORDER, **options)


def shaken(network: torch.nn.Module) -> dict[str, np.ndarray]:
    """The weights of a network, random and in float64."""
    generator = torch.Generator().manual_seed(1)
    network.double().eval()
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator, dtype=torch.float64))
    return {name: value.numpy() for name, value in network.state_dict().items()}


def state(weights: dict[str, np.ndarray], row: list[int]) -> np.ndarray:
    """Σ C_i r of the words before the next, the latest first."""
    contexts, table = weights["log_bilinear.contexts"], weights["log_bilinear.embeddings.weight"]
    before = [weights["log_bilinear.start"]] * (ORDER - 1) + [table[word] for word in row]
    total = np.zeros(WIDTH)
    for back in range(ORDER - 1):
        matrix = np.diag(contexts[back]) if contexts.ndim == 2 else contexts[back]
        total = total + matrix @ before[len(before) - 1 - back]
    return total


def tree_network(tree: WordTree | None = None) -> tuple[TreeSoftmaxLM, dict[str, np.ndarray]]:
    torch.manual_seed(0)
    built = TreeLMHead().build(config(), None)
    assert isinstance(built, TreeSoftmaxLM)
    if tree is not None:
        built.set_tree(tree)
    return built, shaken(built)


def probability(tree: WordTree, weights: dict[str, np.ndarray], word: int, predicted: np.ndarray) -> float:
    """Π σ(± (q · state + b)) from the word up to the root."""
    result = 1.0
    while tree.parents[word] >= 0:
        node = tree.parents[word] - SIZE
        score = weights["nodes.weight"][node] @ predicted + weights["nodes.bias"][node]
        result /= 1 + np.exp(-score if tree.sides[word] else score)
        word = int(tree.parents[word])
    return result


@pytest.mark.parametrize("diagonal", [True, False])
@torch.no_grad()
def test_scores_are_the_log_bilinear_equation(diagonal: bool) -> None:
    register()
    torch.manual_seed(0)
    built = CausalLMHead().build(config(diagonal=diagonal), None)
    assert isinstance(built, LogBilinearForCausalLM)
    assert built.lm_head.weight is built.log_bilinear.embeddings.weight, "one vector for each word"
    first = built.log_bilinear(IDS).last_hidden_state[0, 3]
    table = built.log_bilinear.embeddings.weight
    assert torch.allclose(first, (table[7] + table[7] + table[1]) / 3), "a state begins as the mean of the words"
    weights = shaken(built)
    logits = built(IDS).logits
    for row, ids in enumerate(IDS.tolist()):
        for at in range(len(ids)):
            predicted = state(weights, ids[: at + 1])
            expected = weights["log_bilinear.embeddings.weight"] @ predicted + weights["lm_head.bias"]
            assert logits[row, at].numpy() == pytest.approx(expected, abs=1e-9)


TREES = {
    "random": random_tree(np.random.default_rng(0).permutation(SIZE)),
    "learned": learned_tree(np.random.default_rng(0).normal(size=(SIZE, 3))),
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
@torch.no_grad()
def test_probabilities_are_products_along_the_path_and_sum_to_one(tree: WordTree) -> None:
    built, weights = tree_network(tree)
    signals = TreeLMHead().signals(built, {Field.INPUT_IDS: IDS}, frozenset({TREE_STATES, Signal.NEXT_LOGITS}))
    found = signals[Signal.NEXT_LOGITS].exp().numpy()
    assert found.sum(-1) == pytest.approx(1, abs=1e-5)
    for row, ids in enumerate(IDS.tolist()):
        for at in range(len(ids)):
            predicted = state(weights, ids[: at + 1])
            assert signals[TREE_STATES][row, at].numpy() == pytest.approx(predicted, abs=1e-9)
            expected = [probability(tree, weights, word, predicted) for word in range(SIZE)]
            assert found[row, at] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_the_loss_is_the_mean_log_probability_and_has_its_gradient(tree: WordTree) -> None:
    built, _ = tree_network(tree)
    batch = {Field.INPUT_IDS: IDS}
    signals = TreeLMHead().signals(built, batch, frozenset({TREE_STATES, Signal.NEXT_LOGITS}))
    step = TrainingStep(batch, signals, built, lambda name, batch, requested: {})
    loss = TreeLM().loss(step)["tree_lm"]
    targets = IDS[:, 1:]
    wanted = -signals[Signal.NEXT_LOGITS][:, :-1].take_along_dim(targets.unsqueeze(-1), -1).mean()
    assert float(loss.detach()) == pytest.approx(float(wanted.detach()), abs=1e-5)
    assert TreeLM().counts(batch, built) == {"tree_lm": targets.numel()}
    weights = [built.nodes.weight, cast("LogBilinearModel", built.log_bilinear).embeddings.weight]
    gradients = [torch.autograd.grad(one, weights, retain_graph=True) for one in (loss, wanted)]
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*gradients, strict=True))
    ignored = torch.full_like(targets, IGNORED)
    assert float(built.loss(signals[TREE_STATES][:, :-1], ignored).detach()) == 0


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_a_tree_has_every_word_once_and_two_branches_at_every_node(tree: WordTree) -> None:
    children: dict[int, list[int]] = {}
    for node, (parent, side) in enumerate(zip(tree.parents[:-1], tree.sides[:-1], strict=True)):
        assert parent > node
        children.setdefault(int(parent), []).append(int(side))
    assert sorted(children) == list(range(SIZE, 2 * SIZE - 1)) and all(
        sorted(one) == [0, 1] for one in children.values()
    )
    nodes, turns = tree_paths(tree)
    assert len({tuple(row) for row in turns.tolist()}) == SIZE and (nodes[:, 0] == SIZE - 2).all()
    assert np.array_equal((turns >= 0).sum(1), depths(tree)[:SIZE])


def test_a_random_tree_is_no_deeper_than_it_must_be() -> None:
    assert depths(random_tree(np.random.default_rng(1).permutation(1000)))[:1000].max() == 10


def test_a_learned_tree_finds_groups_of_groups() -> None:
    random = np.random.default_rng(0)
    centres = np.array([[0, 0, 0], [0, 4, 0], [20, 0, 0], [20, 0, 4]])
    group = np.repeat(np.arange(4), (12, 9, 10, 8))
    random.shuffle(group)
    tree = learned_tree(centres[group] + random.normal(scale=0.3, size=(len(group), 3)))
    _, turns = tree_paths(tree)
    assert {tuple(sorted({int(one) for one in group[turns[:, 0] == side]})) for side in (0, 1)} == {(0, 1), (2, 3)}
    of_two_turns = {(int(one), int(two)): set(group[(turns[:, 0] == one) & (turns[:, 1] == two)].tolist())
                    for one, two in turns[:, :2]}  # fmt: skip
    assert sorted(map(tuple, of_two_turns.values())) == [(0,), (1,), (2,), (3,)]


def test_a_round_is_the_expectation_of_two_gaussians_of_one_variance() -> None:
    """And rounds never lower the likelihood."""
    random = np.random.default_rng(2)
    vectors = np.concatenate([random.normal(size=(30, 4)), random.normal(size=(20, 4)) + 1.5])
    share, before = random.random(50), -np.inf
    for _ in range(8):
        weights = np.stack([1 - share, share])
        means = (weights @ vectors) / weights.sum(1, keepdims=True)
        distances = ((vectors - means[:, None]) ** 2).sum(-1)
        variance = (weights * distances).sum() / vectors.size
        logs = np.log(weights.mean(1))[:, None] - distances / (2 * variance) - 2 * np.log(2 * np.pi * variance)
        assert log_odds(vectors, share) == pytest.approx(logs[1] - logs[0], rel=1e-6)
        likelihood = float(np.logaddexp(*logs).sum())
        assert likelihood >= before - 1e-9
        before, share = likelihood, 1 / (1 + np.exp(logs[0] - logs[1]))


@pytest.mark.parametrize("vectors", [np.zeros((9, 3)), np.vstack([np.zeros((19, 3)), np.full((1, 3), 1e6)])])
def test_no_side_is_nearly_empty(vectors: np.ndarray) -> None:
    number = int(halves(vectors).sum())
    least = int(np.ceil(LEAST_SHARE * len(vectors)))
    assert least <= number <= len(vectors) - least


def test_a_learned_tree_begins_from_the_vectors_of_its_start() -> None:
    built, _ = tree_network()
    before = built.tree
    TreeLMHead().begin(built)
    assert np.array_equal(built.tree.parents, before.parents), "only a learned tree begins anew"
    TreeLMHead(tree="learned").begin(built)
    expected = learned_tree(cast("LogBilinearModel", built.log_bilinear).embeddings.weight.detach().numpy())
    assert np.array_equal(built.tree.parents, expected.parents) and not np.array_equal(before.parents, expected.parents)
    assert np.array_equal(built.paths()[1].numpy(), tree_paths(expected)[1]), "paths are those of the new tree"
    learned, random = TreeLMHead(tree="learned"), TreeLMHead()
    assert learned.continues(learned) and not learned.continues(random) and not random.continues(CausalLMHead())


def test_what_cannot_be_a_tree_is_refused() -> None:
    with pytest.raises(RecipeError, match="a vocabulary of one word has no tree"):
        TreeLMHead().build(LogBilinearConfig(vocab_size=1, hidden_size=WIDTH), None)
    with pytest.raises(ValidationError, match="'random' or 'learned'"):
        TreeLMHead.model_validate({"name": "tree_lm", "tree": "oak"})
    with pytest.raises(ValidationError, match="greater than or equal to 2"):
        LogBilinear(order=1)
