"""States that a student learns from its teacher: the equations of the papers, in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from pipelines.parts.objectives import Objective, TrainingStep
from pipelines.parts.objectives.cosine_hidden import CosineHidden
from pipelines.parts.objectives.patient_states import PatientStates
from pipelines.vocabulary import Field, Signal

TOLERANCE = 1e-5
REAL = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])


def loss(objective: Objective, student: NDArray[np.float64], teacher: NDArray[np.float64], *, padded: bool) -> float:
    """The loss for states [layers + 1, B, L, H], of rows without padding unless `padded`."""
    fields = {Field.ATTENTION_MASK: torch.from_numpy(REAL)} if padded else {}
    batch: dict[Field, Tensor] = {Field.INPUT_IDS: torch.ones(2, 5, dtype=torch.int64), **fields}
    own, other = ({Signal.HIDDEN_STATES: tuple(torch.from_numpy(one).float() for one in x)} for x in (student, teacher))
    step = TrainingStep(batch, own, torch.nn.Identity(), lambda *_: other)  # type: ignore[arg-type]
    (value,) = objective.loss(step).values()
    (count,) = objective.counts(batch, torch.nn.Identity()).values()  # type: ignore[arg-type]
    assert count == (2 if isinstance(objective, PatientStates) else int(REAL.sum()) if padded else 10)
    return float(value)


def states(layers: int, seed: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(layers + 1, 2, 5, 8))


@pytest.mark.parametrize("padded", [True, False])
def test_cosine_hidden_is_one_less_the_cosine_of_the_top_states_of_real_tokens(padded: bool) -> None:
    student, teacher = states(2, 0), states(4, 1)
    own, other = student[-1], teacher[-1]
    cosine = (own * other).sum(-1) / np.linalg.norm(own, axis=-1) / np.linalg.norm(other, axis=-1)
    expected = (1 - cosine)[REAL == 1].mean() if padded else (1 - cosine).mean()
    assert loss(CosineHidden(), student, teacher, padded=padded) == pytest.approx(expected, rel=TOLERANCE)
    assert loss(CosineHidden(), student, 3 * student, padded=padded) == pytest.approx(0, abs=1e-6)


PUBLISHED = {
    # §4.1: BERT of 12 layers to 6 and to 3; the top layer learns from the logits alone
    ("skip", 6): [(1, 2), (2, 4), (3, 6), (4, 8), (5, 10)],
    ("last", 6): [(1, 7), (2, 8), (3, 9), (4, 10), (5, 11)],
    ("skip", 3): [(1, 4), (2, 8)],
    ("last", 3): [(1, 10), (2, 11)],
}


@pytest.mark.parametrize(("layers", "size"), PUBLISHED)
def test_patient_layers_are_those_of_the_paper(layers: str, size: int) -> None:
    assert PatientStates.model_validate({"layers": layers}).matches(size, 12) == PUBLISHED[layers, size]
    assert PatientStates.model_validate({"layers": layers, "top": True}).matches(size, 12)[-1] == (size, 12)


@pytest.mark.parametrize("state", ["first", "mean"])
@pytest.mark.parametrize("layers", ["skip", "last"])
def test_patient_states_is_the_squared_distance_of_normalised_states(layers: str, state: str) -> None:
    student, teacher = states(3, 0), states(6, 1)

    def text(one: NDArray[np.float64]) -> NDArray[np.float64]:
        vectors = (
            one[:, 0] if state == "first" else np.stack([r[m == 1].mean(0) for r, m in zip(one, REAL, strict=True)])
        )
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    objective = PatientStates.model_validate({"layers": layers, "state": state})
    pairs = objective.matches(3, 6)
    expected = np.mean([((text(student[i]) - text(teacher[j])) ** 2).sum(-1).mean() for i, j in pairs])
    assert loss(objective, student, teacher, padded=True) == pytest.approx(expected, rel=TOLERANCE)
