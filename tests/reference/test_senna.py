"""Scores of windows against the equation in float64, one by one, and the ranking criterion (Collobert et al. 2011,
equations 10, 14 and 17)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from pipelines.networks.window_scorer import WindowScorer
from pipelines.networks.word_vectors import WordVectorsConfig
from pipelines.parts.corruptions.every_word import CENTER_TOKENS, EveryWord
from pipelines.parts.heads.window_score import WindowScoreHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.ranking_hinge import RankingHinge
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.corruptions.rows import END, SIZE, SPECIAL, plain, token_ids

EMBEDDING, HIDDEN, NEGATIVES = 4, 6, 3
HEAD = WindowScoreHead(window=2, hidden_size=HIDDEN)


def network() -> WindowScorer:
    torch.manual_seed(0)
    built = HEAD.build(WordVectorsConfig(vocab_size=SIZE, hidden_size=EMBEDDING), None)
    assert isinstance(built, WindowScorer)
    with torch.no_grad():  # at first they are 0
        built.outside.normal_()
        built.centre.bias.normal_()
    return built.double()


def batch(length: int = 9) -> dict[Field, torch.Tensor]:
    """Rows with several documents, words alone in theirs among them; a negative that is the centre."""
    rows = plain(3, length)
    rows[Field.INPUT_IDS][1, [3, 5]] = END
    rows[Field.INPUT_IDS][2, 4] = 1
    ends = rows[Field.INPUT_IDS] == END
    rows[Field.DOCUMENTS] = np.cumsum(ends, axis=1) - ends
    given = EveryWord().apply(rows, token_ids(), np.random.default_rng(0))
    given[Field.NEGATIVES] = np.random.default_rng(1).integers(5, SIZE, (len(given[Field.CENTERS]), NEGATIVES))
    given[Field.NEGATIVES][0, 1] = given[Field.CENTERS][0]
    return {name: torch.from_numpy(value) for name, value in given.items()}


def test_centres_are_the_words_of_the_rows_in_their_order() -> None:
    given = batch()
    ids = given[Field.INPUT_IDS]
    words = [int(one) for row in ids for one in row if int(one) not in SPECIAL]
    assert given[Field.CENTERS].tolist() == words == ids[given[CENTER_TOKENS] > 0].tolist()


@pytest.mark.parametrize("length", [9, 2, 1])
@torch.no_grad()
def test_a_score_is_the_equation_of_its_window(length: int) -> None:
    built, given = network(), batch(9)
    if length < 9:  # rows shorter than a window
        begin = {name: value[:1, 1 : 1 + length] for name, value in given.items() if value.ndim == 2}
        given = {**begin, Field.CENTERS: begin[Field.INPUT_IDS].flatten(),
                 Field.NEGATIVES: given[Field.NEGATIVES][:length]}  # fmt: skip
    scores = HEAD.signals(built, given, frozenset({Signal.NOISE_LOGITS}))[Signal.NOISE_LOGITS]
    weights = {name: value.numpy() for name, value in built.state_dict().items()}
    table, neighbours = weights["word_vectors.embeddings.weight"], weights["neighbours.weight"].reshape(4, HIDDEN, -1)
    ids, documents = given[Field.INPUT_IDS].numpy(), given[Field.DOCUMENTS].numpy()
    at = 0
    for row, token in zip(*np.nonzero(given[CENTER_TOKENS].numpy()), strict=True):
        center = int(given[Field.CENTERS][at])
        for number, word in enumerate([center, *given[Field.NEGATIVES][at].tolist()]):
            total = weights["centre.weight"] @ table[word] + weights["centre.bias"]
            for matrix, offset in zip(neighbours, (-2, -1, 1, 2), strict=True):
                other = token + offset
                inside = 0 <= other < ids.shape[1] and documents[row, other] == documents[row, token]
                total = total + matrix @ (table[ids[row, other]] if inside else weights["outside"])
            expected = float(weights["score.weight"][0] @ np.clip(total, -1, 1))
            if number and word == center:
                expected = -np.inf
            assert float(scores[at, number]) == pytest.approx(expected, abs=1e-9)
        at += 1
    assert at == len(scores)


def test_the_loss_is_the_ranking_criterion_and_its_gradient_is_finite() -> None:
    built, given = network(), batch()
    scores = HEAD.signals(built, given, frozenset({Signal.NOISE_LOGITS}))[Signal.NOISE_LOGITS]
    step = TrainingStep(given, {Signal.NOISE_LOGITS: scores}, built, lambda name, batch, requested: {})
    objective = RankingHinge(margin=0.5)
    loss = objective.loss(step)["ranking_hinge"]
    values = scores.detach().numpy()
    expected = sum(max(0.0, 0.5 - row[0] + other) for row in values for other in row[1:]) / len(values)
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-6) and expected > 0
    assert objective.counts(given, built) == {"ranking_hinge": len(values)}
    loss.backward()  # type: ignore[no-untyped-call]  # torch does not type it
    assert all(bool(torch.isfinite(one.grad).all()) for one in built.parameters() if one.grad is not None)
    assert built.word_vectors.embeddings.weight.grad is not None and built.outside.grad is not None


def test_windows_of_a_text_come_to_score_above_others() -> None:
    """Two words that always follow each other, in a text of pairs."""
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    built = HEAD.build(WordVectorsConfig(vocab_size=SIZE, hidden_size=8), None)
    optimizer = torch.optim.Adam(built.parameters(), lr=0.03)

    def text() -> dict[Field, torch.Tensor]:
        first = random.integers(5, 20, (16, 6))
        rows = np.stack([first, first + 15], axis=2).reshape(16, 12)
        given = EveryWord().apply(
            {Field.INPUT_IDS: rows, Field.DOCUMENTS: np.zeros_like(rows)}, token_ids(), random
        ) | {Field.NEGATIVES: random.integers(5, 35, (16 * 12, 5))}
        return {name: torch.from_numpy(value) for name, value in given.items()}

    def step() -> torch.Tensor:
        given = text()
        signals = HEAD.signals(built, given, frozenset({Signal.NOISE_LOGITS}))
        return RankingHinge().loss(TrainingStep(given, signals, built, lambda *one: {}))["ranking_hinge"]

    before = float(step().detach())
    for _ in range(150):
        optimizer.zero_grad()
        step().backward()  # type: ignore[no-untyped-call]  # torch does not type it
        optimizer.step()
    assert float(step().detach()) < before / 3


@pytest.mark.parametrize("options", [{"window": 0}, {"hidden_size": 0}])
def test_a_window_without_neighbours_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        WindowScoreHead(**options)
