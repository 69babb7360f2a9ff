"""Supervised contrastive learning against equation 2 of Khosla et al. 2020, term by term in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.supervised_contrastive import SupervisedContrastive
from pipelines.vocabulary import Field, Signal

LABELS = (0, 1, 0, 2, 1, 0)
"""Class 2 stands alone: its text has nobody to draw near."""


def loss(vectors: torch.Tensor, labels: tuple[int, ...]) -> torch.Tensor:
    batch = {Field.LABELS: torch.tensor(labels)}
    step = TrainingStep(batch, {Signal.POOLED: vectors}, torch.nn.Identity(), lambda *_: {})  # type: ignore[arg-type]
    return SupervisedContrastive(temperature=0.3).loss(step)["supervised_contrastive"]


def test_it_is_the_papers_equation() -> None:
    vectors = np.random.default_rng(0).normal(size=(6, 8))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    terms = []
    for i, label in enumerate(LABELS):
        others = [j for j in range(6) if j != i]
        alike = [j for j in others if LABELS[j] == label]
        whole = np.log(sum(np.exp(unit[i] @ unit[j] / 0.3) for j in others))
        if alike:
            terms.append(-np.mean([unit[i] @ unit[j] / 0.3 - whole for j in alike]))
    assert float(loss(torch.from_numpy(vectors), LABELS)) == pytest.approx(np.mean(terms), rel=1e-6)


def test_texts_that_share_no_class_teach_nothing_and_break_nothing() -> None:
    vectors = torch.randn(3, 8, requires_grad=True)
    value = loss(vectors, (0, 1, 2))
    value.backward()
    assert float(value.detach()) == 0 and vectors.grad is not None and not vectors.grad.isnan().any()


def test_its_gradient_draws_a_class_together() -> None:
    vectors = torch.randn(6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    before = loss(vectors, LABELS)
    before.backward()
    assert vectors.grad is not None and torch.isfinite(vectors.grad).all()
    assert loss(vectors - 0.1 * vectors.grad, LABELS) < before
