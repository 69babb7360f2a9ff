"""GloVe against equations 8 and 9 of the paper in float64, by loops, gradients of autograd and PyTorch's AdaGrad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.corpora.engines.work import run_units
from pipelines.errors import DataError
from pipelines.networks.word_vectors import WordVectorsConfig
from pipelines.parts.estimates import TokenFile, Workspace, weighted_neighbours
from pipelines.parts.estimates.glove import Glove
from pipelines.parts.estimates.glove_factors import STATE, CellBatch, descend, errors, weighting
from tests.small_corpus import documents

TEXTS = [text.split() for text in documents("logging")]
WORDS = ["<pad>", "<end>", *sorted({word for text in TEXTS for word in text})]
END, SIZE, WIDTH, WINDOW = 1, len(WORDS), 8, 4
IDS = {word: number for number, word in enumerate(WORDS)}


def file_of(rows: list[list[int]], folder: Path, size: int = SIZE) -> TokenFile:
    ids = np.asarray([token for row in rows for token in (*row, END)], dtype=np.uint16)
    ids.tofile(folder / "tokens.bin")
    return TokenFile(folder / "tokens.bin", "uint16", tuple(np.bincount(ids, minlength=size).tolist()), END, (0, END))


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> TokenFile:
    return file_of([[IDS[word] for word in words] for words in TEXTS], tmp_path_factory.mktemp("text"))


def workspace(folder: Path) -> Workspace:
    folder.mkdir(exist_ok=True)
    return Workspace(folder, lambda units, home: run_units(units, home, 1))


def vectors(text: TokenFile, folder: Path, **options: object) -> np.ndarray:
    glove = Glove.model_validate({"window": WINDOW, "epochs": 3, **options})
    config = WordVectorsConfig(vocab_size=text.vocabulary_size, hidden_size=WIDTH)
    return glove.weights(text, config, workspace(folder))["embeddings.weight"]


@pytest.mark.parametrize("chunk", [weighted_neighbours.CHUNK, 41])
def test_neighbours_count_the_inverse_of_their_distance(
    text: TokenFile, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = np.zeros((SIZE, SIZE))
    for words in TEXTS:
        for at, word in enumerate(words):
            for other in range(max(0, at - WINDOW), min(len(words), at + WINDOW + 1)):
                if other != at:
                    expected[IDS[word], IDS[words[other]]] += 1 / abs(other - at)
    monkeypatch.setattr(weighted_neighbours, "CHUNK", chunk)
    np.testing.assert_allclose(weighted_neighbours.weighted_neighbours(text, WINDOW).toarray(), expected, rtol=1e-12)


def test_loss_and_step_are_those_of_the_paper_in_float64(text: TokenFile) -> None:
    """Equation 8 by a loop, its gradient by autograd, and the step of torch.optim.Adagrad, with sums that begin at 1 as
    in the authors' code; half of the squares, as there."""
    cells = weighted_neighbours.weighted_neighbours(text, WINDOW).tocoo()
    rows, columns = (torch.from_numpy(ids.astype(np.int64)) for ids in cells.coords)
    counts = cells.data
    weights = torch.from_numpy(weighting(counts, 10.0, 0.75))
    logs = torch.from_numpy(np.log(counts))
    torch.manual_seed(0)
    tables = torch.randn(2, SIZE, WIDTH + 1, dtype=torch.float64) / 3
    loss = 0.0
    for row, column, count in zip(rows.tolist(), columns.tolist(), counts, strict=True):
        word, context = tables[0, row], tables[1, column]
        share = (count / 10) ** 0.75 if count < 10 else 1.0
        product = sum(float(one * other) for one, other in zip(word[:-1], context[:-1], strict=True))
        loss += share * (product + float(word[-1]) + float(context[-1]) - np.log(count)) ** 2
    theirs = tables.clone().requires_grad_()
    half = (weights * errors(theirs[0][rows], theirs[1][columns], logs) ** 2).sum() / 2
    torch.autograd.backward(half)
    assert float(half.detach()) == pytest.approx(loss / 2, rel=1e-12)
    optimizer = torch.optim.Adagrad([theirs], lr=0.05, initial_accumulator_value=1.0, eps=0.0)
    ours, squares = tables.clone(), torch.ones_like(tables)
    assert descend(ours, squares, CellBatch(rows, columns, weights, logs), 0.05) == pytest.approx(loss / 2, rel=1e-12)
    optimizer.step()
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(squares, optimizer.state[theirs]["sum"], rtol=1e-12, atol=1e-12)


def test_loss_falls_and_special_tokens_have_no_vector(text: TokenFile, tmp_path: Path) -> None:
    found = vectors(text, tmp_path / "counts", epochs=8, batch_cells=64, cutoff=1, lr=0.3)
    losses = []
    for epoch in (6, 7):
        with np.load(tmp_path / "counts" / f"epoch-{epoch}" / STATE) as stored:
            losses.append(float(stored["loss"]))
            tables = stored["tables"]
    first = vectors(text, tmp_path / "once", epochs=1, batch_cells=64, cutoff=1, lr=0.3)
    with np.load(tmp_path / "once" / "epoch-0" / STATE) as stored:
        assert losses[1] < losses[0] < float(stored["loss"]) / 2
    assert not found[[0, END]].any() and found[2:].any(axis=1).all() and found.shape == first.shape
    np.testing.assert_array_equal(found[2:], (tables[0] + tables[1])[2:, :WIDTH])


def test_a_killed_estimate_continues_with_the_missing_epoch_and_ends_the_same(text: TokenFile, tmp_path: Path) -> None:
    whole = vectors(text, tmp_path / "whole", epochs=4)
    vectors(text, tmp_path / "killed", epochs=2)
    np.testing.assert_array_equal(vectors(text, tmp_path / "killed", epochs=4), whole)
    assert not (tmp_path / "killed" / "epoch-0" / STATE).exists(), "two epochs are kept on disk, not all"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([[2, 2, 2], [2]], "the text has 1 word of the vocabulary, and glove needs two that occur together"),
        ([[], []], "the text has 0 words of the vocabulary"),
        ([[2], [3], [4]], "no two words are within 4 tokens of each other .*no co-occurrences.* raise estimate.window"),
    ],
)
def test_a_text_without_cooccurrences_is_one_sentence(rows: list[list[int]], words: str, tmp_path: Path) -> None:
    def computes(*_: object) -> list[Path]:
        raise AssertionError("nothing is to be factorised")

    text = file_of(rows, tmp_path, 6)
    config = WordVectorsConfig(vocab_size=6, hidden_size=WIDTH)
    with pytest.raises(DataError, match=words) as refused:
        Glove(window=WINDOW).weights(text, config, Workspace(tmp_path, computes))
    assert "\n" not in str(refused.value)
