"""The maths of the objectives, against Hugging Face or the equation in float64."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from pipelines.parts.corruptions import TokenIds
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.objectives import Objective, Signals, TrainingStep
from pipelines.parts.objectives.contrastive import Contrastive
from pipelines.parts.objectives.cross_entropy import CrossEntropy
from pipelines.parts.objectives.masked_lm import MaskedLM
from pipelines.parts.objectives.match_hidden import MatchHidden
from pipelines.parts.objectives.match_logits import MatchLogits
from pipelines.parts.objectives.squared_logits import SquaredLogits
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents

TOLERANCE = 1e-5
"""Relative: what float32 leaves of a sum over a few hundred terms."""


def loss(
    objective: Objective, batch: Mapping[Field, Tensor], signals: Signals, teacher: Signals | None = None
) -> float:
    step = TrainingStep(batch, signals, torch.nn.Identity(), lambda *_: teacher or {})  # type: ignore[arg-type]
    (value,) = objective.loss(step).values()
    return float(value.detach())


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


def test_masked_lm_over_gathered_positions_is_hugging_faces_own_loss(tokenizer: PreTrainedTokenizerFast) -> None:
    clean = tokenizer(documents("json")[:6], padding="max_length", truncation=True, max_length=32, return_tensors="np")
    tokens = TokenIds(len(tokenizer), tokenizer.mask_token_id, tuple(tokenizer.all_special_ids))
    arrays = TokenMask().apply({Field.INPUT_IDS: clean["input_ids"]}, tokens, np.random.default_rng(0))
    batch = {name: torch.from_numpy(value) for name, value in arrays.items()}
    batch[Field.ATTENTION_MASK] = torch.from_numpy(clean["attention_mask"])
    torch.manual_seed(0)
    network = BertForMaskedLM(
        BertConfig(vocab_size=512, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    ).eval()
    labels = torch.full_like(batch[Field.INPUT_IDS], -100)
    labels.view(-1)[batch[Field.MASKED_POSITIONS]] = batch[Field.MASKED_LABELS]
    theirs = network(input_ids=batch[Field.INPUT_IDS], attention_mask=batch[Field.ATTENTION_MASK], labels=labels).loss
    ours = loss(MaskedLM(), batch, MaskedLMHead().signals(network, batch, frozenset({Signal.MASKED_LOGITS})))
    assert ours == pytest.approx(float(theirs.detach()), rel=TOLERANCE)


def test_contrastive_is_the_mean_over_both_directions_of_info_nce() -> None:
    vectors, half, temperature = np.random.default_rng(0).normal(size=(10, 16)), 5, 0.07
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = unit[:half] @ unit[half:].T / temperature
    expected = -(np.diag(log_softmax(scores)) + np.diag(log_softmax(scores.T))).mean() / 2
    batch = {Field.PARTNER: torch.from_numpy(np.roll(np.arange(10), half))}
    ours = loss(Contrastive(temperature=temperature), batch, {Signal.POOLED: torch.from_numpy(vectors).float()})
    assert ours == pytest.approx(expected, rel=TOLERANCE)


def test_contrastive_leaves_out_rows_without_a_partner() -> None:
    vectors, temperature = np.random.default_rng(1).normal(size=(8, 16)), 0.05
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    paired = [0, 2, 3]
    scores = unit[paired] @ unit[[row + 4 for row in paired]].T / temperature
    expected = -(np.diag(log_softmax(scores)) + np.diag(log_softmax(scores.T))).mean() / 2
    batch = {Field.PARTNER: torch.tensor([4, -1, 6, 7, 0, -1, 2, 3])}
    ours = loss(Contrastive(temperature=temperature), batch, {Signal.POOLED: torch.from_numpy(vectors).float()})
    assert ours == pytest.approx(expected, rel=TOLERANCE)


def test_match_logits_is_the_softened_cross_entropy_times_temperature_squared() -> None:
    random, temperature = np.random.default_rng(0), 2.5
    student, teacher = random.normal(size=(2, 7, 4)) * 3
    softened = np.exp(log_softmax(teacher / temperature))
    expected = -(softened * log_softmax(student / temperature)).sum(-1).mean() * temperature**2
    ours = loss(
        MatchLogits(temperature=temperature),
        {},
        {Signal.LOGITS: torch.from_numpy(student).float()},
        {Signal.LOGITS: torch.from_numpy(teacher).float()},
    )
    assert ours == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize("padded", [False, True])
def test_squared_logits_is_the_squared_distance_of_each_row(padded: bool) -> None:
    """Tang et al. 2019, §3.2: the squared norm over classes; a question with fewer choices has padding of −∞."""
    student, teacher = np.random.default_rng(0).normal(size=(2, 7, 4)) * 3
    expected = np.square(student - teacher).sum(-1).mean()
    values = [torch.from_numpy(one).float() for one in (student, teacher)]
    if padded:
        values = [torch.cat([one, torch.full((7, 1), -torch.inf)], -1) for one in values]
    values[0].requires_grad_()
    signals, goals = ({Signal.LOGITS: one} for one in values)
    step = TrainingStep({}, signals, torch.nn.Identity(), lambda *_: goals)  # type: ignore[arg-type]
    term = SquaredLogits().loss(step)["squared_logits"]
    assert float(term.detach()) == pytest.approx(expected, rel=TOLERANCE)
    term.backward()  # type: ignore[no-untyped-call]
    assert values[0].grad is not None and bool(values[0].grad.isfinite().all())
    np.testing.assert_allclose(values[0].grad[:, :4].numpy(), 2 * (student - teacher) / 7, rtol=1e-4)


def test_match_hidden_compares_evenly_spaced_layers_over_real_tokens_only() -> None:
    random = np.random.default_rng(0)
    student, teacher = random.normal(size=(3, 2, 5, 8)), random.normal(size=(5, 2, 5, 8))
    real = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    expected = np.mean([np.square(student[i] - teacher[2 * i])[real == 1].mean() for i in range(3)])
    ours = loss(
        MatchHidden(),
        {Field.ATTENTION_MASK: torch.from_numpy(real)},
        {Signal.HIDDEN_STATES: tuple(torch.from_numpy(layer).float() for layer in student)},
        {Signal.HIDDEN_STATES: tuple(torch.from_numpy(layer).float() for layer in teacher)},
    )
    assert ours == pytest.approx(expected, rel=TOLERANCE)


def test_match_hidden_projects_a_narrow_student_to_its_teachers_width_and_reads_rows_without_padding() -> None:
    """TinyBERT, eq. 8: the mean square of H_S · W_h − H_T; eq. 9: the same of the embeddings, with W_e."""
    random = np.random.default_rng(0)
    student, teacher = random.normal(size=(3, 2, 5, 4)), random.normal(size=(5, 2, 5, 6))
    objective = MatchHidden()
    projection = objective.build(BertConfig(hidden_size=4), BertConfig(hidden_size=6))
    assert projection is not None
    w_e, w_h = (dict(projection.named_parameters())[f"{name}.weight"] for name in ("embeddings", "layers"))
    maps = [one.detach().double().numpy().T for one in (w_e, w_h, w_h)]
    expected = np.mean([np.square(student[i] @ maps[i] - teacher[2 * i]).mean() for i in range(3)])
    signals = {Signal.HIDDEN_STATES: tuple(torch.from_numpy(layer).float() for layer in student)}
    step = TrainingStep(
        {Field.INPUT_IDS: torch.ones(2, 5, dtype=torch.int64)},
        signals,
        torch.nn.Identity(),  # type: ignore[arg-type]
        lambda *_: {Signal.HIDDEN_STATES: tuple(torch.from_numpy(layer).float() for layer in teacher)},
        modules={objective.name: projection},
    )
    (value,) = objective.loss(step).values()
    value.backward()  # type: ignore[no-untyped-call]
    assert float(value.detach()) == pytest.approx(expected, rel=TOLERANCE)
    assert w_e.grad is not None and w_h.grad is not None and float(w_e.grad.norm() * w_h.grad.norm()) > 0
    assert objective.build(BertConfig(hidden_size=6), BertConfig(hidden_size=6)) is None


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_with_smoothing_mixes_in_the_uniform_distribution(smoothing: float) -> None:
    random = np.random.default_rng(0)
    logits, labels = random.normal(size=(9, 4)), random.integers(4, size=9)
    target = np.eye(4)[labels] * (1 - smoothing) + smoothing / 4
    expected = -(target * log_softmax(logits)).sum(-1).mean()
    ours = loss(
        CrossEntropy(smoothing=smoothing),
        {Field.LABELS: torch.from_numpy(labels)},
        {Signal.LOGITS: torch.from_numpy(logits).float()},
    )
    assert ours == pytest.approx(expected, rel=TOLERANCE)
