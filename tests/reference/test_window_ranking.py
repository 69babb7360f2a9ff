"""Windows and documents that rank words: scores and gradients against the paper's equations in float64, by loops; the
windows of a text; training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from pipelines.networks.prototype_vectors import PrototypeVectorsConfig, PrototypeVectorsModel
from pipelines.networks.ranking_scorer import RankingScorer, ranking_hinge
from pipelines.parts.estimates.ranking_epoch import RankingEpoch, RankingOptions, windows_of
from pipelines.parts.estimates.word_frequencies import STATE
from tests.reference.test_word_prototypes import AMBIGUOUS, END, SIZE, TOPICS, WORDS_OF_TOPIC, documents, file_of
from tests.reference.test_word_prototypes import estimated as estimated_by

OPTIONS = RankingOptions(window=3, hidden=16, document=True, power=0.0, rate=0.05, batch_words=512)


@pytest.mark.parametrize("document", [True, False])
def test_the_loss_is_that_of_the_paper_in_float64(document: bool) -> None:
    """g = w₂ tanh(W₁ [x₁ … x_W; x] + b₁) + w₄ tanh(W₃ [c; x] + b₃); Σ max(0, 1 − g(x) + g(x′)) (§2, eq. 1 to 6)."""
    torch.manual_seed(0)
    scorer = RankingScorer(9, 4, 2, 5, document).double()
    windows, candidates = torch.tensor([[2, 3], [4, 2], [1, 5]]), torch.tensor([[6, 8], [7, 2], [3, 3]])
    ids, owners = torch.tensor([2, 3, 6, 1, 4, 2, 7]), torch.tensor([0, 0, 0, 0, 1, 1, 1])
    weights = torch.tensor([0, 0, 1.5, 0.2, 2, 0.7, 1, 0.1, 3], dtype=torch.float64)
    means = scorer.means(ids, owners, 3, weights)
    x = scorer.words.weight
    total = torch.zeros((), dtype=torch.float64)
    for number in range(3):
        inside = ids[owners == number]
        mean = sum((weights[one] * x[one] for one in inside), torch.zeros(4, dtype=torch.float64))
        mean = mean / weights[inside].sum() if len(inside) else mean
        scores = []
        for word in candidates[number]:
            local = torch.cat([x[windows[number, 0]], x[windows[number, 1]], x[word]])
            joined = torch.cat([scorer.before.weight, scorer.last.weight], dim=1)
            score = scorer.local_score.weight[0] @ torch.tanh(joined @ local + scorer.before.bias)
            if scorer.document is not None and scorer.in_document is not None and scorer.global_score is not None:
                both = torch.cat([scorer.document.weight, scorer.in_document.weight], dim=1)
                hidden = torch.tanh(both @ torch.cat([mean, x[word]]) + scorer.document.bias)
                score = score + scorer.global_score.weight[0] @ hidden
            scores.append(score)
        total = total + torch.clamp(1 - scores[0] + scores[1], min=0)
    loss = ranking_hinge(scorer(windows, candidates, means))
    torch.testing.assert_close(loss, total, rtol=1e-12, atol=0)
    ours, expected = (torch.autograd.grad(one, list(scorer.parameters())) for one in (loss, total))
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)
    # a random word that is the true one costs the margin
    assert float(ranking_hinge(torch.tensor([[0.3, 0.3], [2.0, 0.5]]))) == 1.0


def test_windows_end_with_a_word_and_stay_in_their_document() -> None:
    tokens = np.asarray([5, 6, 7, END, 8, END, END, 9, 4], dtype=np.uint16)
    batch = windows_of(tokens, np.flatnonzero(tokens == END), 1, 7, 3, (0, END))
    assert batch.last.tolist() == [6, 7, 8, 9]
    assert batch.windows.tolist() == [[END, END, 5], [END, 5, 6], [END, END, END], [END, END, END]]
    assert batch.document.tolist() == [0, 0, 1, 2] and batch.documents == 3
    assert batch.words.tolist() == [5, 6, 7, 8, 9, 4] and batch.owners.tolist() == [0, 0, 0, 1, 2, 2]
    assert not len(windows_of(tokens, np.flatnonzero(tokens == END), 5, 2, 3, (0, END)).last)


def trained(folder: Path, epochs: int, options: RankingOptions = OPTIONS) -> dict[str, np.ndarray]:
    folder.mkdir(exist_ok=True)
    text = file_of(documents(), folder)
    start = folder / "begin.npz"
    drawn = (np.random.default_rng(0).random((SIZE, 12), dtype=np.float32) - np.float32(0.5)) / 12
    np.savez(start, vectors=drawn, informative=np.ones(SIZE, dtype=np.float32))
    for epoch in range(epochs):
        unit = RankingEpoch(folder, "words", epoch, text, options, start)
        if not (folder / unit.name).exists():
            (folder / unit.name).mkdir()
            unit(folder / unit.name)
    with np.load(folder / unit.name / STATE) as stored:
        return dict(stored)


def test_training_ranks_words_of_the_topic_first_and_continues_where_it_was_killed(tmp_path: Path) -> None:
    first, last = trained(tmp_path / "one", 1), trained(tmp_path / "whole", 6)
    assert last["loss"] < 0.8 * first["loss"]
    unit = last["vectors"] / np.linalg.norm(last["vectors"], axis=1, keepdims=True)
    words = np.arange(3, SIZE)
    similar = unit[words] @ unit[words].T
    np.fill_diagonal(similar, -2)
    topics = (words - 3) // WORDS_OF_TOPIC
    assert (topics[similar.argmax(1)] == topics).mean() > 0.9
    trained(tmp_path / "killed", 3)
    resumed = trained(tmp_path / "killed", 6)
    assert all(np.array_equal(last[name], resumed[name]) for name in last)


@pytest.mark.parametrize("learned_by", ["windows", "windows_and_documents"])
def test_prototypes_may_be_learned_by_windows(learned_by: str, tmp_path: Path) -> None:
    text = file_of(documents(), tmp_path)
    model, weights = estimated_by(text, tmp_path / "trained", learned_by=learned_by, hidden=16, lr=0.05)
    assert isinstance(model, PrototypeVectorsModel) and isinstance(model.config, PrototypeVectorsConfig)
    assert weights["others"][AMBIGUOUS] == 1 and not np.array_equal(
        weights["prototypes.weight"][AMBIGUOUS], weights["prototypes.weight"][weights["further"][AMBIGUOUS]]
    )
    rows = torch.tensor(documents(40))
    states = model(rows).last_hidden_state[rows == AMBIGUOUS]
    similar = (states @ states.T).fill_diagonal_(-100)
    topics = torch.arange(40) % TOPICS
    assert float((topics[similar.argmax(1)] == topics).float().mean()) > 0.8
