"""Embeddings by counting against scikit-learn's decomposition, and what of a network they leave as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.decomposition import TruncatedSVD
from transformers import BertConfig, BertForMaskedLM

from pipelines.errors import DataError
from pipelines.parts.estimates import TokenFile, Workspace
from pipelines.parts.estimates.lsa import neighbour_counts, positive_information
from pipelines.parts.estimates.lsa_embeddings import EMBEDDINGS, LsaEmbeddings, leading_singular_vectors
from tests.reference.test_lsa import END, SIZE, WIDTH, text

__all__ = ["text"]
UNSEEN = 2
"""Words of the vocabulary that the text lacks."""


def config(width: int = WIDTH) -> BertConfig:
    return BertConfig(
        vocab_size=SIZE + UNSEEN, hidden_size=width, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )


def weights(text: TokenFile, width: int, folder: Path) -> dict[str, np.ndarray]:
    longer = TokenFile(text.path, text.kind, (*text.counts, *[0] * UNSEEN), text.end, text.special)
    return LsaEmbeddings(window=5).weights(longer, config(width), Workspace(folder, lambda units, home: []))


def test_the_subspace_is_nearly_that_of_an_exact_decomposition(text: TokenFile) -> None:
    matrix = positive_information(neighbour_counts(text, 5), 0.75)
    left, values = leading_singular_vectors(matrix, WIDTH)
    assert np.allclose(left.T @ left, np.eye(WIDTH), atol=1e-8)
    exact = TruncatedSVD(WIDTH, algorithm="arpack", random_state=0).fit(matrix).singular_values_
    assert np.allclose(values, exact, rtol=0.04)
    held = np.linalg.norm(left.T @ matrix, axis=1)
    assert (held**2).sum() > 0.96 * (exact**2).sum() > 0.96 * (held**2).sum()


def test_rows_are_weighted_singular_vectors_of_one_length(text: TokenFile, tmp_path: Path) -> None:
    (rows,) = weights(text, WIDTH, tmp_path).values()
    matrix = positive_information(neighbour_counts(text, 5), 0.75)
    left, values = leading_singular_vectors(matrix, WIDTH)
    expected, counted = left * values**0.5, np.diff(matrix.indptr) > 0
    expected[counted] /= np.linalg.norm(expected[counted], axis=1, keepdims=True)
    lengths = np.linalg.norm(rows[:SIZE], axis=1)
    assert np.allclose(lengths[counted], 3 * 0.02 * WIDTH**0.5, rtol=1e-5) and not lengths[~counted].any()
    cosines = rows[:SIZE][counted] @ rows[:SIZE][counted].T / lengths[counted][:, None] / lengths[counted]
    assert np.allclose(cosines, expected[counted] @ expected[counted].T, atol=0.05), "but for words that were not seen"


def test_only_words_of_the_text_change_and_the_output_layer_stays_tied(text: TokenFile, tmp_path: Path) -> None:
    network = BertForMaskedLM(config())
    before = {name: value.clone() for name, value in network.state_dict().items()}
    placed = weights(text, WIDTH, tmp_path)
    LsaEmbeddings().set_weights(network, placed)
    after = network.state_dict()
    tied = {"bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"}
    assert {name for name in before if not torch.equal(before[name], after[name])} == tied
    table = network.get_input_embeddings().weight
    assert table.data_ptr() == network.get_output_embeddings().weight.data_ptr() and table.requires_grad
    kept = [0, END, SIZE, SIZE + 1]
    assert torch.equal(table[kept], before["bert.embeddings.word_embeddings.weight"][kept])
    assert torch.equal(table[2:SIZE], torch.from_numpy(placed[EMBEDDINGS][2:SIZE]))


def test_a_wider_table_than_the_text_has_words_is_refused(text: TokenFile, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="lower the width of backbone"):
        weights(text, 2 * SIZE, tmp_path)
