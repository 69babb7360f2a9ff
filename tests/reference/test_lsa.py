"""Latent semantic analysis against scikit-learn's decomposition and the formulas over dense matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.decomposition import TruncatedSVD

from pipelines.errors import DataError
from pipelines.networks.word_vectors import WordVectorsConfig
from pipelines.parts.estimates import TokenFile, Workspace, lsa
from tests.small_corpus import documents

TEXTS = [text.split() for text in documents("logging")]
WORDS = ["<pad>", "<end>", *sorted({word for text in TEXTS for word in text})]
END, SIZE, WIDTH = 1, len(WORDS), 8
IDS = {word: number for number, word in enumerate(WORDS)}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> TokenFile:
    path = tmp_path_factory.mktemp("text") / "tokens.bin"
    ids = np.concatenate([[*(IDS[word] for word in text), END] for text in TEXTS]).astype(np.uint16)
    ids.tofile(path)
    return TokenFile(path, "uint16", tuple(np.bincount(ids, minlength=SIZE).tolist()), END, (0, END))


def dense_documents() -> np.ndarray:
    counts = np.zeros((SIZE, len(TEXTS)))
    for column, words in enumerate(TEXTS):
        for word in words:
            counts[IDS[word], column] += 1
    return counts


def dense_neighbours(window: int) -> np.ndarray:
    counts = np.zeros((SIZE, SIZE))
    for words in TEXTS:
        for at, word in enumerate(words):
            for other in words[max(0, at - window) : at] + words[at + 1 : at + 1 + window]:
                counts[IDS[word], IDS[other]] += 1
    return counts


@pytest.mark.parametrize("chunk", [lsa.CHUNK, 37])
def test_counts_are_those_of_a_loop_over_the_words(
    text: TokenFile, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lsa, "CHUNK", chunk)
    assert np.array_equal(lsa.document_counts(text).toarray(), dense_documents())
    assert np.array_equal(lsa.neighbour_counts(text, 3).toarray(), dense_neighbours(3))


def test_weights_are_the_formulas(text: TokenFile) -> None:
    counts = dense_documents()
    for row, weighted in zip(counts, lsa.log_entropy(lsa.document_counts(text)).toarray(), strict=True):
        shares = row[row > 0] / row.sum() if row.any() else np.ones(1)
        weight = 1 + (shares * np.log(shares)).sum() / np.log(len(TEXTS))
        assert weighted == pytest.approx(weight * np.log1p(row))
    counts = dense_neighbours(5)
    information = lsa.positive_information(lsa.neighbour_counts(text, 5), 0.75).toarray()
    total, smoothed = counts.sum(), counts.sum(0) ** 0.75
    with np.errstate(divide="ignore", invalid="ignore"):
        pointwise = np.log((counts / total) / (counts.sum(1)[:, None] / total * (smoothed / smoothed.sum())))
    assert np.allclose(information, np.where(counts > 0, np.maximum(pointwise, 0), 0))


@pytest.mark.parametrize("contexts", ["documents", "neighbours"])
@pytest.mark.parametrize("power", [0.5, 1.0])
def test_vectors_are_scikit_learns(contexts: str, power: float, text: TokenFile, tmp_path: Path) -> None:
    estimate = lsa.Lsa.model_validate({"contexts": contexts, "power": power})
    config = WordVectorsConfig(vocab_size=SIZE, hidden_size=WIDTH)
    vectors = estimate.weights(text, config, Workspace(tmp_path, lambda units, home: []))["embeddings.weight"]
    assert vectors.shape == (SIZE, WIDTH) and vectors.dtype == np.float32 and not vectors[[0, END]].any()
    matrix = (
        lsa.log_entropy(lsa.document_counts(text))
        if contexts == "documents"
        else lsa.positive_information(lsa.neighbour_counts(text, 5), 0.75)
    )
    reference = TruncatedSVD(WIDTH, algorithm="arpack", random_state=0).fit(matrix)
    # scikit-learn multiplies by the singular values to the power of one
    expected = reference.transform(matrix) * reference.singular_values_ ** (power - 1)
    assert np.allclose(np.abs(vectors), np.abs(expected), atol=1e-4 * np.abs(expected).max())
    assert np.allclose(vectors @ vectors.T, expected @ expected.T, atol=1e-4 * (expected**2).sum(1).max())


def test_more_dimensions_than_the_text_has_are_refused(text: TokenFile, tmp_path: Path) -> None:
    config = WordVectorsConfig(vocab_size=SIZE, hidden_size=len(TEXTS))
    with pytest.raises(DataError, match=r"backbone.hidden_size"):
        lsa.Lsa().weights(text, config, Workspace(tmp_path, lambda units, home: []))
