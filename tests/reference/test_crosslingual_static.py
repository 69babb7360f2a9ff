"""Vectors of two languages from alignments: projection and canonical variables against their equations in float64,
neighbours in spelling against the edit distance, translations nearest in the space of both, texts that have none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from pipelines.corpora.engines.work import run_units
from pipelines.errors import DataError
from pipelines.networks.word_vectors import WordVectorsConfig, WordVectorsModel
from pipelines.parts.estimates import TokenFile, Workspace
from pipelines.parts.estimates.correlated_vectors import CorrelatedVectors, aligned_pairs, canonical_variables
from pipelines.parts.estimates.lsa import Lsa
from pipelines.parts.estimates.one_edit import is_one_edit, words_at_one_edit
from pipelines.parts.estimates.paired_vectors import VECTORS, PairedVectors
from pipelines.parts.estimates.projected_vectors import ProjectedVectors, projected
from pipelines.parts.estimates.sides_of_pairs import SOURCE, TARGET, AlignedWords, SideOfPairs
from pipelines.parts.estimates.translation_clusters import run_numbers, translations_of
from pipelines.parts.estimates.word2vec import Word2Vec

PAD, UNKNOWN, END, NUMBER = 0, 1, 2, 3
"""Special tokens, and a word that both languages write alike."""
TOPICS, WORDS = 6, 5
FIRST = 4
FOREIGN = FIRST + TOPICS * WORDS
SIZE = FOREIGN + TOPICS * WORDS
SPELT = tuple(f"{'source' if number < FOREIGN else 'target'}{number}" for number in range(SIZE))
SMALL = Lsa(contexts="neighbours", power=0.5)


def pairs(number: int = 500) -> list[list[int]]:
    """Texts of one topic, each followed by its words in the other language, in another order."""
    random, rows = np.random.default_rng(0), []
    for _ in range(number):
        words = (FIRST + random.integers(0, TOPICS) * WORDS + random.integers(0, WORDS, 6)).tolist()
        foreign = random.permutation([word - FIRST + FOREIGN for word in words]).tolist()
        rows += [[*words, NUMBER], [NUMBER, *foreign]]
    return rows


def file_of(rows: list[list[int]], folder: Path) -> TokenFile:
    ids = np.asarray([token for row in rows for token in (*row, END)], dtype=np.uint16)
    ids.tofile(folder / "tokens.bin")
    counts = tuple(np.bincount(ids, minlength=SIZE).tolist())
    return TokenFile(folder / "tokens.bin", "uint16", counts, END, (PAD, UNKNOWN, END), SPELT)


def workspace(folder: Path, seed: int = 0) -> Workspace:
    folder.mkdir(exist_ok=True)
    return Workspace(folder, lambda units, home: run_units(units, home, 1), seed)


def vectors_of(estimate: PairedVectors, text: TokenFile, folder: Path, width: int = 8, seed: int = 0) -> Any:
    """[V, W] the vectors that a model of `estimate` has."""
    config = WordVectorsConfig(vocab_size=SIZE, hidden_size=width)
    weights = estimate.weights(text, config, workspace(folder, seed))
    model = WordVectorsModel(config)
    estimate.set_weights(model, weights)
    assert config.hidden_size == width
    return model.embeddings.weight.detach().numpy()


def test_a_projected_word_is_the_mean_of_those_that_it_is_aligned_with() -> None:
    random = np.random.default_rng(1)
    spelt = ("the", "cat", "cats", "dog", "chat", "chats", "chien", "chiens", "lièvre")
    known = np.arange(len(spelt)) < 4
    vectors = np.where(known[:, None], random.normal(size=(len(spelt), 5)), 0.0)
    counts = np.zeros((len(spelt), len(spelt)))
    counts[4, 1], counts[4, 2], counts[6, 3], counts[6, 0] = 3, 1, 2, 5
    counts[1, 0] = 7  # a word of both languages
    ours = projected(vectors, known, csr_array(counts), spelt)
    for word in (4, 6):
        mean = sum(counts[word, other] / counts[word].sum() * vectors[other] for other in range(4))
        assert ours[word] == pytest.approx(mean, rel=1e-12)
    assert np.array_equal(ours[known], vectors[known])
    assert np.array_equal(ours[5], ours[4]) and np.array_equal(ours[7], ours[6]), "one letter more"
    assert not ours[8].any(), "no aligned word is spelt alike"
    alone = projected(vectors, known, csr_array(counts), ())
    assert not alone[5].any() and np.array_equal(alone[4], ours[4])


def test_a_word_near_several_has_their_mean() -> None:
    spelt, known = ("a", "on", "in", "an"), np.asarray([True, False, False, False])
    counts = np.zeros((4, 4))
    counts[1, 0], counts[2, 0] = 1, 4
    vectors = np.asarray([[2.0, -4.0], [0, 0], [0, 0], [0, 0]])
    ours = projected(vectors, known, csr_array(counts), spelt)
    assert ours[3] == pytest.approx((ours[1] + ours[2]) / 2)


def distance(first: str, second: str) -> int:
    """The edit distance of two words (Wagner & Fischer 1974)."""
    row = list(range(len(second) + 1))
    for number, letter in enumerate(first, 1):
        before, row = row, [number]
        for at, other in enumerate(second, 1):
            row.append(min(before[at] + 1, row[-1] + 1, before[at - 1] + (letter != other)))
    return row[-1]


def test_spellings_at_one_edit_are_all_that_the_edit_distance_gives() -> None:
    random = np.random.default_rng(0)
    drawn = {"".join(random.choice(list("abc"), size=int(random.integers(1, 6)))) for _ in range(160)}
    known = {word: number for number, word in enumerate(sorted(drawn))}
    queries = [*sorted(drawn)[:60], "cbacb", "", "ბგ"]
    expected = [[number for word, number in known.items() if distance(query, word) == 1] for query in queries]
    assert words_at_one_edit(queries, known) == expected
    for query in queries:
        assert [is_one_edit(query, word) for word in known] == [distance(query, word) == 1 for word in known]


def test_alignments_are_counted_by_word_and_sides_are_texts_of_their_own(tmp_path: Path) -> None:
    rows = pairs(80)
    text = file_of(rows, tmp_path)
    tokens = text.tokens.astype(np.int64)
    became = translations_of(tokens, run_numbers(tokens, END), text, 3)
    expected = Counter((int(other), int(word)) for other, word in zip(became, tokens, strict=True) if other >= 0)
    unit = AlignedWords(text, 3)
    (folder,) = run_units([unit], tmp_path / "units", 1)
    counts = unit.in_folder(folder)
    assert counts.shape == (SIZE, SIZE) and counts.sum() == sum(expected.values())
    assert all(counts[row, column] == times for (row, column), times in expected.items())
    for side, own in ((SOURCE, rows[::2]), (TARGET, rows[1::2])):
        one = SideOfPairs(text, side)
        (folder,) = run_units([one], tmp_path / "units", 1)
        alone = one.in_folder(folder)
        assert alone.tokens.tolist() == [token for row in own for token in (*row, END)]
        assert alone.counts == tuple(np.bincount(alone.tokens, minlength=SIZE).tolist())


def test_canonical_variables_are_those_of_hotelling() -> None:
    random = np.random.default_rng(0)
    shared = random.normal(size=(200, 3))
    first, second = (
        shared @ random.normal(size=(3, 6)) + random.normal(size=(200, 6)) * 0.5 + random.normal(size=6)
        for _ in range(2)
    )
    maps = canonical_variables(first, second, 4, "here")
    one, other = ((pair - pair.mean(0)) @ each for pair, each in zip((first, second), maps, strict=True))
    assert one.T @ one / 200 == pytest.approx(np.eye(4), abs=1e-10)
    assert other.T @ other / 200 == pytest.approx(np.eye(4), abs=1e-10)
    cross = one.T @ other / 200
    assert cross == pytest.approx(np.diag(np.diag(cross)), abs=1e-10)
    # the squares of the correlations are eigenvalues (Hotelling 1936)
    x, y = first - first.mean(0), second - second.mean(0)
    product = np.linalg.solve(x.T @ x, x.T @ y) @ np.linalg.solve(y.T @ y, y.T @ x)
    eigenvalues = np.sort(np.linalg.eigvals(product).real)[::-1]
    assert np.diag(cross) ** 2 == pytest.approx(eigenvalues[:4], rel=1e-9)


def test_pairs_of_words_are_the_most_frequent_ones() -> None:
    counts = np.zeros((6, 6))
    counts[3, 0], counts[3, 1], counts[4, 2], counts[4, 1], counts[1, 0], counts[5, 4] = 2, 3, 2, 2, 9, 9
    known = np.arange(6) < 3
    target, source = aligned_pairs(csr_array(counts), known)
    assert target.tolist() == [3, 4] and source.tolist() == [1, 1], "neither a known word, nor one with a foreign one"


@pytest.mark.parametrize("estimate", [ProjectedVectors(vectors=SMALL), CorrelatedVectors(vectors=SMALL, share=0.8)])
def test_a_word_is_nearest_to_the_topic_of_its_translation(estimate: PairedVectors, tmp_path: Path) -> None:
    vectors = vectors_of(estimate, file_of(pairs(), tmp_path), tmp_path / "trained")
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    nearest = (unit[FOREIGN:] @ unit[FIRST:FOREIGN].T).argmax(1)
    assert (nearest // WORDS == np.arange(TOPICS * WORDS) // WORDS).mean() > 0.95
    assert not vectors[[PAD, UNKNOWN, END]].any() and vectors[NUMBER].any()


def test_without_alignment_translations_are_not_near(tmp_path: Path) -> None:
    text = file_of(pairs(), tmp_path)
    weights = SMALL.weights(text, WordVectorsConfig(vocab_size=SIZE, hidden_size=8), workspace(tmp_path / "trained"))
    unit = weights[VECTORS] / np.maximum(np.linalg.norm(weights[VECTORS], axis=1, keepdims=True), 1e-12)
    nearest = (unit[FOREIGN:] @ unit[FIRST:FOREIGN].T).argmax(1)
    assert (nearest // WORDS == np.arange(TOPICS * WORDS) // WORDS).mean() < 0.6


def test_a_seed_is_a_draw_of_the_vectors_and_of_nothing_else(tmp_path: Path) -> None:
    text, estimate = file_of(pairs(60), tmp_path), ProjectedVectors(vectors=Word2Vec(epochs=1))
    first, again, other = (vectors_of(estimate, text, tmp_path / str(n), 4, seed) for n, seed in enumerate((3, 3, 4)))
    assert estimate.draws and estimate.epochs == 1
    assert np.array_equal(first, again) and not np.allclose(first, other, atol=1e-6)
    assert ProjectedVectors().tiny().vectors == Word2Vec().tiny()


def test_texts_without_translations_are_one_sentence(tmp_path: Path) -> None:
    rows, config = pairs(20), WordVectorsConfig(vocab_size=SIZE, hidden_size=8)
    with pytest.raises(DataError, match="39 texts are no pairs of a text and its translation"):
        ProjectedVectors().weights(file_of(rows[:-1], tmp_path), config, workspace(tmp_path / "odd"))
    same = [row for row in rows[::2] for _ in range(2)]
    with pytest.raises(DataError, match="no word of the translations alone is aligned.*projected_vectors.*min_count"):
        ProjectedVectors().weights(file_of(same, tmp_path), config, workspace(tmp_path / "same"))
    wide = WordVectorsConfig(vocab_size=SIZE, hidden_size=28)
    with pytest.raises(DataError, match=r"pairs of aligned words span \d+ directions, and vectors of 28 elements"):
        CorrelatedVectors(vectors=Word2Vec(epochs=1)).weights(
            file_of(pairs(4), tmp_path), wide, workspace(tmp_path / "few")
        )


@pytest.mark.parametrize("inner", ["projected_vectors", "kneser_ney", "lsa_embeddings"])
def test_vectors_of_one_language_are_estimated_from_its_text(inner: str) -> None:
    with pytest.raises(ValueError, match=f"vectors: {inner} gives no vector to each word of a text of one language"):
        ProjectedVectors.model_validate({"vectors": inner})
