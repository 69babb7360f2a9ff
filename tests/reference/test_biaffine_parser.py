"""The biaffine parser against its equations in float64, and its trees against enumeration and networkx."""

from __future__ import annotations

from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pipelines.errors import DataError
from pipelines.networks.bilstm import BilstmConfig
from pipelines.networks.bilstm import register_auto_classes as register_bilstm
from pipelines.networks.spanning_trees import best_tree
from pipelines.parts.heads.biaffine_parser import (
    ARC_LOGITS,
    FIRST_TOKENS,
    HEAD_RELATIONS,
    HEAD_WORDS,
    RELATION_LOGITS,
    BiaffineParserHead,
)
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.biaffine_parser import BiaffineParser
from pipelines.task_families import Task, TaskFamily
from pipelines.task_families.dependency_parsing import NO_HEAD
from pipelines.vocabulary import Field
from tests.pipelines.parts.heads.small_parts import tensors

RELATIONS = ("nsubj", "obj", "punct", "root")
TASK = Task(TaskFamily.model_validate("dependency_parsing"), RELATIONS)
HEAD = BiaffineParserHead(arcs=6, relations=5)
IDS = torch.tensor([[3, 7, 5, 9, 4], [8, 6, 2, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
FIRST = torch.tensor([[0, 1, 3], [0, 2, -1]])
BATCH: dict[Field, Any] = {Field.INPUT_IDS: IDS, Field.ATTENTION_MASK: MASK, FIRST_TOKENS: FIRST}
WORDS = (3, 2)
SENTENCE = {"sentence": "Ada wrote it.", "words": ["Ada", "wrote", "it", "."], "heads": [2, 0, 2, 2]}
EXAMPLE = {**SENTENCE, "relations": ["nsubj:pass", "root", "obj", "punct"], "text": "Ada wrote it."}


def network() -> Any:
    register_bilstm()
    torch.manual_seed(0)
    config = BilstmConfig(vocab_size=12, hidden_size=8, embedding_size=7)
    return HEAD.build(config, TASK).double().eval()


@torch.no_grad()
def expected(built: Any, row: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Arc scores [W, W + 1] and relation scores [W, W + 1, R] of a sentence, pair by pair: equations 3 to 6."""
    weights = {name: value.numpy() for name, value in built.state_dict().items()}

    def layer(name: str, states: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = states @ weights[f"{name}.0.weight"].T + weights[f"{name}.0.bias"]
        result: NDArray[np.float64] = np.where(sums > 0, sums, 0.1 * sums)
        return result

    count = WORDS[row]
    states = built.base_model(IDS, MASK).last_hidden_state[row, FIRST[row, :count]].numpy()
    above = np.concatenate([weights["root"][None], states])
    arcs, relations = np.full((count, count + 1), -np.inf), np.zeros((count, count + 1, len(RELATIONS)))
    dependents, heads = layer("arc_dependents", states), layer("arc_heads", above)
    of_dependents, of_heads = layer("relation_dependents", states), layer("relation_heads", above)
    for word, head in product(range(count), range(count + 1)):
        if head != word + 1:
            arcs[word, head] = dependents[word] @ weights["arcs.pairs"][0] @ heads[head]
            arcs[word, head] += weights["arcs.of_heads.weight"][0] @ heads[head]
        for kind in range(len(RELATIONS)):
            pair = of_dependents[word] @ weights["relations.pairs"][kind] @ of_heads[head]
            one = weights["relations.of_heads.weight"][kind] @ of_heads[head] + weights["relations.of_heads.bias"][kind]
            relations[word, head, kind] = (
                pair + one + weights["relations.of_dependents.weight"][kind] @ (of_dependents[word])
            )
    return arcs, relations


@torch.no_grad()
def test_pairs_of_words_are_scored_by_the_equations() -> None:
    built = network()
    signals = HEAD.signals(built, BATCH, HEAD.answers_from)
    for row, count in enumerate(WORDS):
        arcs, relations = expected(built, row)
        found = signals[ARC_LOGITS][row].numpy()
        assert found[:count, : count + 1] == pytest.approx(arcs, abs=1e-6)  # compared in float32
        assert np.isneginf(found[:, count + 1 :]).all(), "what is beyond a sentence is no head"
        assert signals[RELATION_LOGITS][row, :count, : count + 1].numpy() == pytest.approx(relations, abs=1e-9)


def test_the_loss_is_that_of_the_correct_heads_and_of_the_relations_to_them() -> None:
    built = network()
    heads = torch.tensor([[2, 0, -100], [0, 1, -100]])
    relations = torch.tensor([[0, 3, -100], [3, -100, -100]])
    batch = {**BATCH, HEAD_WORDS: heads, HEAD_RELATIONS: relations}
    step = TrainingStep(batch, HEAD.signals(built, batch, HEAD.answers_from), built, lambda *_: {})
    terms = {name: float(value.detach()) for name, value in BiaffineParser().loss(step).items()}
    right: dict[str, list[float]] = {"arcs": [], "relations": []}
    for row, word in zip(*np.nonzero(heads.numpy() >= 0), strict=True):
        arcs, scores = expected(built, row)
        head, kind = int(heads[row, word]), int(relations[row, word])
        right["arcs"].append(float(np.logaddexp.reduce(arcs[word]) - arcs[word, head]))
        if kind >= 0:
            right["relations"].append(float(np.logaddexp.reduce(scores[word, head]) - scores[word, head, kind]))
    assert terms == pytest.approx({name: np.mean(values) for name, values in right.items()}, abs=1e-6)
    assert BiaffineParser().counts(batch, built) == {name: len(values) for name, values in right.items()}
    none = {**BATCH, HEAD_WORDS: torch.full_like(heads, -100), HEAD_RELATIONS: torch.full_like(heads, -100)}
    step = TrainingStep(none, HEAD.signals(built, none, HEAD.answers_from), built, lambda *_: {})
    assert [float(one.detach()) for one in BiaffineParser().loss(step).values()] == [0.0, 0.0]


def is_tree(heads: tuple[int, ...]) -> bool:
    """Whether all words lead to the root, of which one is a child."""
    if heads.count(0) != 1:
        return False
    for word in range(1, len(heads) + 1):
        steps = 0
        while word and steps <= len(heads):
            word, steps = heads[word - 1], steps + 1
        if word:
            return False
    return True


@pytest.mark.parametrize("words", [1, 2, 3, 4, 5])
def test_the_best_tree_is_that_of_all_trees_with_one_root(words: int) -> None:
    trees = [heads for heads in product(range(words + 1), repeat=words) if is_tree(heads)]
    assert len(trees) == words ** (words - 1), "Cayley's formula, times the words that may be the root's child"
    for seed in range(40):
        scores = np.random.default_rng(seed).normal(size=(words, words + 1))
        scores[:, 0] += 2 * (seed % 3)  # several words would be the root's
        best = max(trees, key=lambda heads: sum(scores[word, head] for word, head in enumerate(heads)))
        assert best_tree(scores) == list(best)
    assert best_tree(np.empty((0, 1))) == []


def test_the_best_tree_of_a_long_sentence_scores_as_that_of_networkx() -> None:
    networkx = import_module("networkx")
    for seed in range(10):
        words = 12 + 3 * seed
        scores = np.random.default_rng(seed).normal(size=(words, words + 1))
        graph = networkx.DiGraph()
        for word, head in product(range(1, words + 1), range(words + 1)):
            if word != head:
                graph.add_edge(head, word, weight=scores[word - 1, head] - (1000 if head == 0 else 0))
        right = sum(scores[word - 1, head] for head, word in networkx.maximum_spanning_arborescence(graph).edges)
        tree = best_tree(scores)
        assert is_tree(tuple(tree))
        assert sum(scores[word, head] for word, head in enumerate(tree)) == pytest.approx(right, abs=1e-9)


def test_words_without_tokens_have_no_arcs_and_the_others_are_counted_in_the_sentence(tokenizer: Any) -> None:
    whole, cut = (HEAD.encode([EXAMPLE], TASK, tokenizer, length) for length in (32, 5))
    fields = tensors(whole, np.arange(1))
    count = len(SENTENCE["words"])
    assert fields[HEAD_WORDS][0, :count].tolist() == SENTENCE["heads"] and fields[HEAD_WORDS][0, count:].max() == -100
    assert fields[HEAD_RELATIONS][0, :count].tolist() == [0, 3, 1, 2], "subtypes are left out, as the family says"
    assert (fields[FIRST_TOKENS][0, :count] >= 0).all() and (fields[FIRST_TOKENS][0, count:] == -1).all()
    covered = [int(word) for word in cut.words[0][:, 0]]  # type: ignore[attr-defined]
    assert 0 < len(covered) < count
    size = len(covered)
    arcs, relations = torch.zeros(1, size, size + 1), torch.zeros(1, size, size + 1, len(RELATIONS))
    arcs[0, :, 1:] = arcs[0, :, 1:].masked_fill(torch.eye(size).bool(), float("-inf"))
    outputs: Any = [(np.arange(1), {}, {ARC_LOGITS: arcs, RELATION_LOGITS: relations})]
    (answer,) = HEAD.answer(network(), cut, outputs, TASK, tokenizer)
    assert [word for word, (head, _) in enumerate(answer) if head != NO_HEAD] == covered
    assert sum(head == 0 for head, _ in answer) == 1 and len(answer) == count


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": []}, "example 1: the column 'words' is empty"),
        ({"heads": [2, 0]}, "example 1: its column 'heads' holds 2 for 4 words"),
        ({"relations": None}, "example 1: its column 'relations' holds 0 for 4 words"),
        ({"heads": [2, 0, 2, 5]}, r"example 1: its column 'heads' holds 5, expected 0 \(the root\) to 4"),
    ],
)
def test_an_example_that_is_no_tree_is_named(changes: dict[str, Any], message: str, tokenizer: Any) -> None:
    with pytest.raises(DataError, match=message):
        HEAD.encode([EXAMPLE, {**EXAMPLE, **changes}], TASK, tokenizer, 32)
