"""A tree of words from IS-A relations: terms are branches, Huffman trees inside of them, the rest beside them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.errors import DataError
from pipelines.networks.huffman import paths
from pipelines.networks.taxonomy import read_taxonomy, taxonomy_tree
from pipelines.networks.tree_softmax import TreeSoftmaxLM
from pipelines.networks.word_trees import WordTree, depths, tree_paths
from pipelines.parts.backbones.log_bilinear import LogBilinear
from pipelines.parts.heads.tree_lm import TreeLMHead
from pipelines.parts.tokenizers.words import Words
from tests.small_corpus import documents
from tests.steps import ROOT

ANIMALS = "# animals\ndog\tcanine\nwolf\tcanine\ncanine\tanimal\ncat\tanimal\noak\tplant\nDog\tplant\n"
VOCABULARY = ["<pad>", "the", "Dog", "wolf", "cat", "oak", "animal", "of"]
COUNTS = [0, 50, 8, 2, 20, 4, 6, 30]


def written(folder: Path, text: str) -> Path:
    path = folder / f"{abs(hash(text))}.tsv"
    path.write_text(text, encoding="utf-8")
    return path


def below(tree: WordTree, node: int) -> frozenset[int]:
    """The words below a node."""
    size = (len(tree.parents) + 1) // 2
    if node < size:
        return frozenset({node})
    return frozenset().union(*(below(tree, int(child)) for child in np.flatnonzero(tree.parents == node)))


def test_terms_are_branches_and_other_words_are_one_more(tmp_path: Path) -> None:
    tree = taxonomy_tree(written(tmp_path, ANIMALS), VOCABULARY, COUNTS)
    size = len(VOCABULARY)
    groups = {frozenset(VOCABULARY[word] for word in below(tree, node)) for node in range(size, 2 * size - 1)}
    assert {frozenset({"Dog", "wolf"}), frozenset({"Dog", "wolf", "cat", "animal"})} <= groups
    assert frozenset({"Dog", "wolf", "cat", "animal", "oak"}) in groups, "animals and plants are the rarest branches"
    assert frozenset({"<pad>", "the", "of"}) in groups
    assert tree.parents[-1] == -1 and (tree.parents[:-1] > np.arange(2 * size - 2)).all()
    nodes, turns = tree_paths(tree)
    assert len({tuple(row) for row in turns.tolist()}) == size and (nodes[:, 0] == size - 2).all()


def test_a_term_of_many_words_is_a_huffman_tree(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    words, counts = [f"w{number}" for number in range(40)], random.integers(1, 500, 40).tolist()
    tree = taxonomy_tree(written(tmp_path, "".join(f"{word}\tword\n" for word in words)), words, counts)
    expected = (paths(counts)[1] >= 0).sum(1)
    assert np.dot(depths(tree)[:40], counts) == np.dot(expected, counts), "codes of the least length"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dog\tanimal\nwolf\n", r"\.tsv:2: a line has a term, a tab, and the term that it is a kind of; got 'wolf'"),
        ("dog\tcanine\tanimal\n", r"\.tsv:1: a line has a term, a tab"),
        ("dog\tcanine\ncanine\tdog\n", r"\.tsv:2: 'canine' would be a kind of itself, by way of 'dog'"),
        ("dog\tdog\n", r"\.tsv:1: 'dog' would be a kind of itself"),
        ("# nothing\n", r"\.tsv: no line has a term"),
    ],
)
def test_a_file_that_is_no_taxonomy_is_refused_when_the_recipe_is_read(text: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(DataError, match=message):
        read_taxonomy(path)
    with pytest.raises(ValueError, match=re.escape(path.name)):
        LogBilinear(taxonomy=path)


def test_a_taxonomy_of_other_words_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "quark\tfermion\nlepton\tfermion\n")
    with pytest.raises(DataError, match=r"backbone\.taxonomy: .* has none of the 8 words .* such as 'the'"):
        taxonomy_tree(path, VOCABULARY, COUNTS)


def test_the_shipped_taxonomy_becomes_the_tree_of_a_network() -> None:
    shipped = ROOT / "recipes/knowledge/kinds_of_words.tsv"
    tokenizer = Words(vocab_size=600, min_count=1).train(documents("logging", "json"))
    config = LogBilinear(hidden_size=8, taxonomy=shipped).config(tokenizer, 32)
    built = TreeLMHead().build(config, None)
    assert isinstance(built, TreeSoftmaxLM)
    words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    known = set(read_taxonomy(shipped))
    assert sum(word in known for word in words) > 100
    tree = built.tree
    articles = [tokenizer.convert_tokens_to_ids(word) for word in ("the", "a", "an")]
    at, group = articles[0], frozenset[int]()
    while not set(articles) <= group:
        at = int(tree.parents[at])
        group = below(tree, at)
    assert group == set(articles), "the articles are one branch"
    assert np.array_equal(built.paths()[1].numpy(), tree_paths(tree)[1])
    torch.manual_seed(0)
    random = TreeLMHead(tree="random").build(config, None)
    assert isinstance(random, TreeSoftmaxLM) and not np.array_equal(random.tree.parents, tree.parents)
