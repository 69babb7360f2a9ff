"""Brown clusters against a search that computes the mutual information anew for every pair, and topics against the
equations of variational Bayes in float64."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.special import digamma

from pipelines.errors import DataError
from pipelines.networks.word_vectors import WordVectorsConfig
from pipelines.parts.estimates import Estimation, TokenFile, Workspace, brown_clusters
from pipelines.parts.estimates.brown_clusters import BrownClusters
from pipelines.parts.estimates.class_merging import MergedClasses
from pipelines.parts.estimates.latent_dirichlet import LatentDirichlet
from pipelines.parts.estimates.lsa import document_counts
from tests.small_corpus import documents

PAD, UNK, END = 0, 1, 2
WORDS = 3
"""Id of the first word."""


def text_of(texts: Sequence[Sequence[int]], size: int, folder: Path) -> TokenFile:
    ids = np.concatenate([[*one, END] for one in texts]).astype(np.uint16)
    ids.tofile(folder / "tokens.bin")
    counts = tuple(np.bincount(ids, minlength=size).tolist())
    return TokenFile(folder / "tokens.bin", "uint16", counts, END, (PAD, UNK, END))


def vectors_of(estimate: Estimation, text: TokenFile, width: int) -> np.ndarray:
    config = WordVectorsConfig(vocab_size=text.vocabulary_size, hidden_size=width)
    return estimate.weights(text, config, Workspace(text.path.parent, lambda units, home: []))["embeddings.weight"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> TokenFile:
    """Two modules' documentation, in the 60 most frequent words."""
    texts = [one.split() for one in documents("logging", "json")]
    flat = [word for one in texts for word in one]
    ranked = sorted(set(flat), key=lambda word: (-flat.count(word), word))[:60]
    ids = {word: WORDS + rank for rank, word in enumerate(ranked)}
    return text_of([[ids.get(word, UNK) for word in one] for one in texts], WORDS + 60, tmp_path_factory.mktemp("text"))


def searched(pairs: np.ndarray, classes: int) -> tuple[list[set[int]], list[tuple[set[int], set[int]]]]:
    """Classes of words, and the pairs that merge after that, each by the whole sum of every candidate."""
    total, first, second = pairs.sum(), pairs.sum(1), pairs.sum(0)

    def information(groups: Sequence[set[int]]) -> float:
        value = 0.0
        for one in groups:
            for two in groups:
                share = pairs[np.ix_(sorted(one), sorted(two))].sum() / total
                if share:
                    independent = first[sorted(one)].sum() * second[sorted(two)].sum() / total**2
                    value += share * np.log(share / independent)
        return value

    def merged(groups: list[set[int]]) -> tuple[list[set[int]], tuple[set[int], set[int]]]:
        candidates = [
            (information([*(one for at, one in enumerate(groups) if at not in (i, j)), groups[i] | groups[j]]), i, j)
            for i in range(len(groups))
            for j in range(i + 1, len(groups))
        ]
        _, i, j = max(candidates, key=lambda one: one[0])
        return [*(one for at, one in enumerate(groups) if at not in (i, j)), groups[i] | groups[j]], (
            groups[i],
            groups[j],
        )

    groups = [{word} for word in range(classes)]
    for word in range(classes, len(pairs)):
        groups, _ = merged([*groups, {word}])
    final, order = list(groups), []
    while len(groups) > 1:
        groups, pair = merged(groups)
        order.append(pair)
    return final, order


@pytest.mark.parametrize("seed", range(3))
def test_classes_and_their_tree_are_those_of_a_search_over_all_pairs(seed: int) -> None:
    random = np.random.default_rng(seed)
    # no two candidates are equal, so that the order of a search does not matter
    pairs = random.gamma(0.4, size=(14, 14)) * (random.random((14, 14)) < 0.7)
    from scipy.sparse import csr_array

    class_of, tree = MergedClasses(csr_array(pairs), 5).merge()
    groups, order = searched(pairs, 5)
    mine = [set(np.flatnonzero(class_of == one).tolist()) for one in range(5)]
    assert sorted(map(sorted, mine)) == sorted(map(sorted, groups))
    for node, (one, two) in zip(range(3, -1, -1), order, strict=True):
        sides = [{word for word in range(14) if tree[class_of[word], node] == side} for side in (-1, 1)]
        assert sides in ([one, two], [two, one])


def test_losses_are_differences_of_information(text: TokenFile) -> None:
    pairs = brown_clusters.adjacent_words(text)[WORDS:][:, WORDS:]
    classes = MergedClasses(pairs, 60)
    for word in range(40):
        classes._join(word, word)
    for _ in range(20):  # what is kept of mergers stays true
        before, losses = classes.information(), classes.losses()
        pair = classes._best()
        classes._merge_pair(*pair)
        assert before - classes.information() == pytest.approx(losses[pair], abs=1e-9)
        assert losses[pair] == losses.min() > -1e-9


@pytest.mark.parametrize("chunk", [brown_clusters.CHUNK, 37])
def test_adjacent_words_are_those_of_a_loop(text: TokenFile, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brown_clusters, "CHUNK", chunk)
    expected = np.zeros((text.vocabulary_size, text.vocabulary_size))
    for one, two in zip(text.tokens[:-1], text.tokens[1:], strict=True):
        expected[one, two] += one >= WORDS and two >= WORDS
    assert expected.any() and np.array_equal(brown_clusters.adjacent_words(text).toarray(), expected)


def test_a_vector_is_a_path_from_the_root(text: TokenFile) -> None:
    vectors = vectors_of(BrownClusters(), text, 15)
    assert not vectors[:WORDS].any() and vectors[WORDS:, 0].all(), "every word is on one side of the root"
    paths = np.unique(vectors[WORDS:], axis=0)
    assert len(paths) == 16, "one path for each class"
    # below a node are words of one side of any other node that is above it, and each class ends alone
    for node in range(15):
        below = paths[paths[:, node] != 0]
        assert {-1, 1} == set(below[:, node])
        above = [other for other in range(node) if below[:, other].any()]
        assert all(len(set(below[:, other])) == 1 for other in above)


def variational(counts: np.ndarray, start: np.ndarray, alpha: float, eta: float) -> np.ndarray:
    """λ after one update with all documents (Hoffman et al. 2010, equations 5 to 8)."""
    topics = np.exp(digamma(start) - digamma(start.sum(1, keepdims=True)))
    total = np.zeros_like(start)
    for document in counts:
        gamma = np.ones(len(start))
        for _ in range(2000):
            weights = np.exp(digamma(gamma))[:, None] * topics
            shares = weights / weights.sum(0)
            gamma = alpha + (shares * document).sum(1)
        weights = np.exp(digamma(gamma))[:, None] * topics
        total += document * weights / weights.sum(0)
    return eta + total


def test_topics_are_a_fixed_point_of_the_equations() -> None:
    """On documents of two vocabularies, to the accuracy at which documents are inferred."""
    random = np.random.default_rng(0)
    rates = np.zeros((2, 12))
    rates[0, :6], rates[1, 6:] = random.uniform(1, 4, 6), random.uniform(1, 4, 6)
    counts = np.stack([random.poisson(rates[number % 2]) for number in range(40)]).astype(float)
    from scipy.sparse import csr_array

    estimate = LatentDirichlet(epochs=60, batch_documents=40)
    expected = estimate.topic_counts(csr_array(counts), 2)
    again = variational(counts, expected, alpha=0.5, eta=0.5)
    assert np.allclose(expected, again, rtol=0.02, atol=0.3)
    owners = expected.argmax(0)
    assert len(set(owners[:6])) == len(set(owners[6:])) == 1 and owners[0] != owners[6]


def test_a_vector_is_what_a_word_says_of_topics(text: TokenFile) -> None:
    vectors = vectors_of(LatentDirichlet(), text, 4)
    assert not vectors[:WORDS].any()
    expected = LatentDirichlet().topic_counts(document_counts(text).T.tocsr()[:, WORDS:], 4)
    says = 4 * (expected / expected.sum(0)).T - 1
    assert vectors[WORDS:].std() == pytest.approx(0.1, rel=1e-5)
    np.testing.assert_allclose(vectors[WORDS:], 0.1 * says / says.std(), atol=1e-5)
    assert np.allclose(vectors_of(LatentDirichlet(deviation=0.3), text, 4), 3 * vectors, atol=1e-5)
    assert np.array_equal(vectors, vectors_of(LatentDirichlet(), text, 4)), "a function of the text alone"


@pytest.mark.parametrize(("estimate", "width", "message"), [
    (BrownClusters(), 60, "60 words are no 61 classes.*backbone.hidden_size"),
    (LatentDirichlet(), 60, "no 60 topics; lower backbone.hidden_size"),
])  # fmt: skip
def test_more_classes_than_words_are_refused(estimate: Estimation, width: int, message: str, text: TokenFile) -> None:
    with pytest.raises(DataError, match=message):
        vectors_of(estimate, text, width)


@pytest.mark.parametrize("estimate", [BrownClusters(), LatentDirichlet()])
def test_a_text_of_one_word_is_refused(estimate: Estimation, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="1 word of the vocabulary"):
        vectors_of(estimate, text_of([[WORDS] * 5], WORDS + 1, tmp_path), 1)


def test_words_that_are_never_adjacent_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="next to each other"):
        vectors_of(BrownClusters(), text_of([[WORDS], [WORDS + 1]], WORDS + 2, tmp_path), 1)
