"""BAM against its equation in float64: the target moves from the teacher's distribution to the label (§2.3)."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch

from pipelines.parts.objectives import TrainingStep
from pipelines.recipe.lines import line_views
from pipelines.vocabulary import Field, Signal
from tests.steps import shipped

LABELS = torch.tensor([2, 0, 1])


@pytest.mark.parametrize("line", ["topic", "pairs"])
@pytest.mark.parametrize("progress", [0.0, 0.25, 0.9])
def test_the_target_is_a_mix_of_the_label_and_the_teachers_answer(line: str, progress: float) -> None:
    random = np.random.default_rng(0)
    student, teacher = random.normal(size=(2, 3, 4)) * 2
    log_student = student - np.log(np.exp(student).sum(-1, keepdims=True))
    answer = np.exp(teacher) / np.exp(teacher).sum(-1, keepdims=True)
    target = progress * np.eye(4)[LABELS.numpy()] + (1 - progress) * answer
    expected = -(target * log_student).sum(-1).mean()

    batch: dict[Field, Any] = {Field.LABELS: LABELS, Field.INPUT_IDS: torch.zeros(3, 1, dtype=torch.int64)}
    signals = {Signal.LOGITS: torch.from_numpy(student).float()}
    taught = {Signal.LOGITS: torch.from_numpy(teacher).float()}
    step = TrainingStep(batch, signals, cast("Any", torch.nn.Identity()), lambda *_: taught, progress=progress)
    objectives = line_views(shipped("bam").stages["annealed"])[line].objective
    assert [one.name for one in objectives] == ["match_logits", "cross_entropy"]
    total = sum(one.factor(progress) * value for one in objectives for value in one.loss(step).values())
    assert float(total) == pytest.approx(expected, rel=1e-5)
