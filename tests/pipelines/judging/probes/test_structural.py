"""The structural probe against the paper's equations in float64, and trees read by hand."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.errors import DataError
from pipelines.judging.probes import LAYERS
from pipelines.judging.probes.structural import (
    COLUMNS,
    StructuralProbe,
    batch_of,
    depth_loss,
    distance_loss,
    judge,
    rank_correlations,
    squared_distances,
    squared_lengths,
)
from pipelines.judging.probes.trees import depths, distances, edges, spanning_tree
from tests.pipelines.judging.probes.small_models import opened, save_model, write_table

# The chef who ran to the store was out of food .
HEADS = [2, 10, 4, 2, 7, 7, 4, 10, 10, 0, 10]
PATHS = {(1, 10): 2, (1, 2): 1, (3, 7): 2, (5, 1): 4, (7, 10): 3, (11, 2): 2, (8, 6): 5}
"""Edges between words, counted by hand on the drawing of the tree."""


def test_distances_and_depths_of_a_tree_read_by_hand() -> None:
    found = distances(HEADS)
    assert {pair: found[pair[0] - 1, pair[1] - 1] for pair in PATHS} == PATHS
    assert (found == found.T).all() and (np.diag(found) == 0).all()
    assert depths(HEADS).tolist() == [2, 1, 3, 2, 4, 4, 3, 1, 1, 0, 1]


def test_the_equations_as_the_paper_writes_them() -> None:
    random = np.random.default_rng(0)
    sentences = [random.normal(size=(size, 6)).astype(np.float32) for size in (4, 11)]
    trees = [[0, 1, 1, 3], HEADS]
    matrix = random.normal(size=(3, 6))
    of_distances = of_depths = 0.0
    for words, heads in zip(sentences, trees, strict=True):
        size, true, deep = len(words), distances(heads), depths(heads)
        for i, j in product(range(size), repeat=2):
            difference = matrix @ (words[i].astype(np.float64) - words[j].astype(np.float64))
            assert squared_distances(words, matrix)[i, j] == pytest.approx(difference @ difference)
            of_distances += abs(true[i, j] - difference @ difference) / size**2 / 2
        for i in range(size):
            mapped = matrix @ words[i].astype(np.float64)
            assert squared_lengths(words, matrix)[i] == pytest.approx(mapped @ mapped)
            of_depths += abs(deep[i] - mapped @ mapped) / size / 2
    as_torch = torch.from_numpy(matrix.astype(np.float32))
    for truth, loss, expected in ((distances, distance_loss, of_distances), (depths, depth_loss, of_depths)):
        batch = batch_of(sentences, [truth(heads).astype(np.float32) for heads in trees])
        assert loss(as_torch, *batch).item() == pytest.approx(expected, rel=1e-5)


def test_uuas_of_a_tree_read_by_hand() -> None:
    kept = np.asarray([True] * 10 + [False])
    true = distances(HEADS).astype(np.float64)
    assert len(edges(HEADS, kept)) == 9 and spanning_tree(true, kept) == edges(HEADS, kept)
    told = dict(zip(COLUMNS, judge(true, depths(HEADS).astype(float), HEADS, kept), strict=True))
    assert told == {"right": 9, "arcs": 9, "root": 1, "length": 11, "counts": 1, "distances": 1, "depths": 1}
    # `chef` and `ran` drawn apart, `store` and `was` together: one arc less, by hand
    true[1, 3] = true[3, 1] = 9
    true[6, 7] = true[7, 6] = 0.5
    told = dict(zip(COLUMNS, judge(true, np.arange(11.0), HEADS, kept), strict=True))
    assert told["right"] == 8 and told["root"] == 0


def test_spearman_is_scipys() -> None:
    from scipy.stats import spearmanr

    random = np.random.default_rng(1)
    predicted, true = random.integers(0, 5, (6, 9)), random.integers(0, 4, (6, 9))
    expected = [spearmanr(a, b).statistic for a, b in zip(predicted, true, strict=True)]
    assert rank_correlations(predicted, true) == pytest.approx(expected)
    assert rank_correlations(np.ones((1, 4)), np.arange(4)[None]).tolist() == [0.0]


def test_correlations_are_averaged_by_length_and_short_sentences_do_not_count() -> None:
    rows = [
        [0, 0, 0, length, counts, value, value]
        for length, counts, value in ((6, 1, 0.2), (6, 1, 0.4), (9, 1, 0.9), (3, 0, 0))
    ]
    assert StructuralProbe().score("distance_spearman", np.asarray(rows, float)) == pytest.approx((0.3 + 0.9) / 2)


def test_a_tree_that_lies_in_the_states_is_found() -> None:
    """Vectors whose squared distances are a tree's: one coordinate per edge, as in Hewitt & Manning's footnote."""
    random = np.random.default_rng(2)
    sentences, truths = [], []
    for _ in range(60):
        heads = [0, *(int(random.integers(1, word + 1)) for word in range(1, 8))]
        words = np.zeros((8, 8), np.float32)
        for word in range(1, 8):
            words[word] = words[heads[word] - 1]
            words[word, word] = 1.0
        sentences.append(words)
        truths.append(distances(heads).astype(np.float32))
    matrix = StructuralProbe(epochs=60, lr=0.02).fit(sentences, truths, distance_loss, seed=0)
    apart = [
        np.abs(squared_distances(words, matrix) - truth).mean() for words, truth in zip(sentences, truths, strict=True)
    ]
    assert np.mean(apart) < 0.1


def test_sentences_that_are_cut_are_left_out_and_told(tmp_path: Path) -> None:
    words = ["parser"] * 11
    row = {"sentence": " ".join(words), "words": words, "heads": HEADS, "relations": ["dep"] * 10 + ["punct"]}
    long = {**row, "words": words * 9, "heads": [0, *[1] * 98], "relations": ["dep"] * 99}
    tables = {name: write_table(tmp_path / f"{name}.parquet", [row, row, long]) for name in ("train", "test")}
    folder = save_model(tmp_path / "model")
    seen = StructuralProbe(epochs=1).observe(opened(folder, tables, "dependency_parsing"))
    assert seen.statistics[LAYERS].shape == (3, 2, len(COLUMNS)) and seen.notes["not_covered"] == 1
    with pytest.raises(DataError, match="no sentence fits into budget.length"):
        StructuralProbe(epochs=1).observe(opened(folder, tables, "dependency_parsing", length=8))
