"""Matches of layers: each loss is its paper's equation in float64, and a match that cannot be is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import BertConfig

from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.match_attention import MatchAttention
from pipelines.parts.objectives.match_layers import MatchLayers
from pipelines.vocabulary import Field, Signal
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled

TOLERANCE = 1e-5
REAL = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
LENGTHS = REAL.sum(1)
BATCH: dict[Field, Tensor] = {
    Field.INPUT_IDS: torch.ones(2, 5, dtype=torch.int64),
    Field.ATTENTION_MASK: torch.from_numpy(REAL),
}
STUDENT, TEACHER = (np.random.default_rng(seed).normal(size=(layers, 2, 5, 8)) for seed, layers in ((0, 3), (1, 5)))
OWN, OTHER = (np.random.default_rng(seed).normal(size=(layers, 2, 2, 5, 5)) for seed, layers in ((2, 2), (3, 4)))


def signals(states: NDArray[np.float64], scores: NDArray[np.float64]) -> dict[Signal, Any]:
    hidden, attention = (tuple(torch.from_numpy(one).float() for one in x) for x in (states, scores))
    return {Signal.HIDDEN_STATES: hidden, Signal.ATTENTION_SCORES: attention}


def step_of(modules: dict[str, torch.nn.Module] | None = None) -> TrainingStep:
    own, other = signals(STUDENT, OWN), signals(TEACHER, OTHER)
    network: Any = torch.nn.Identity()
    return TrainingStep(BATCH, own, network, lambda *_: other, modules=modules or {})


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    normal: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return normal


def relations(lower: NDArray[np.float64], upper: NDArray[np.float64], row: int) -> NDArray[np.float64]:
    """Products of the states of all pairs of tokens of a text (Huang & Wang 2017, eq. 7, of tokens)."""
    result: NDArray[np.float64] = (lower[row] @ upper[row].T / lower.shape[-1])[: LENGTHS[row], : LENGTHS[row]]
    return result


def flow(lower: NDArray[np.float64], upper: NDArray[np.float64], row: int) -> NDArray[np.float64]:
    """Products of all pairs of elements, mean over the tokens (Yim et al. 2017, eq. 1)."""
    end = LENGTHS[row]
    result: NDArray[np.float64] = lower[row, :end].T @ upper[row, :end] / end
    return result


def _pairs(of: Any) -> list[NDArray[np.float64]]:
    return [of(STUDENT[0], STUDENT[2], row) - of(TEACHER[0], TEACHER[4], row) for row in (0, 1)]


EXPECTED = {
    "mean_square": np.square(STUDENT[1] - TEACHER[2])[REAL == 1].mean(),
    "cosine_distance": (1 - (unit(STUDENT[1]) * unit(TEACHER[2])).sum(-1))[REAL == 1].mean(),
    "first_states": np.square(unit(STUDENT[1][:, 0]) - unit(TEACHER[2][:, 0])).mean(),
    "token_relations": np.square(np.concatenate([one.ravel() for one in _pairs(relations)])).mean(),
    "layer_flow": np.square(np.stack(_pairs(flow))).mean(),
}
COUNTS = {"mean_square": 8, "cosine_distance": 8, "first_states": 2, "token_relations": 9 + 25, "layer_flow": 2}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_match_is_the_equation_of_its_loss_over_real_tokens(name: str) -> None:
    both = name in ("token_relations", "layer_flow")
    layers = {"student": [0, 2], "teacher": [0, 4]} if both else {"student": 1, "teacher": 2}
    objective = MatchLayers.model_validate({"matches": [{**layers, "loss": name, "weight": 3}]})
    ((term, value),) = objective.loss(step_of()).items()
    assert float(value) == pytest.approx(3 * EXPECTED[name], rel=TOLERANCE)
    assert objective.counts(BATCH, torch.nn.Identity()) == {term: COUNTS[name]}  # type: ignore[arg-type]
    assert objective.required_signals == {Signal.HIDDEN_STATES}


@pytest.mark.parametrize("compare", ["scores", "distributions"])
def test_attention_of_one_layer_is_compared_as_match_attention_does(compare: str) -> None:
    match = {"student": 2, "teacher": 3, "loss": compare}
    objective = MatchLayers.model_validate({"matches": [match]})
    (value,) = objective.loss(step_of()).values()
    alone: Any = torch.nn.Identity()
    own, other = signals(STUDENT, OWN[1:]), signals(TEACHER, OTHER[2:3])
    whole = MatchAttention.model_validate({"compare": compare})
    (expected,) = whole.loss(TrainingStep(BATCH, own, alone, lambda *_: other)).values()
    assert float(value) == pytest.approx(float(expected), rel=TOLERANCE)
    assert list(objective.counts(BATCH, alone).values()) == list(whole.counts(BATCH, alone).values())
    assert objective.required_signals == {Signal.ATTENTION_SCORES}


def test_a_projection_maps_the_student_and_learns() -> None:
    matches = [{"student": 0, "teacher": 0}, {"student": 2, "teacher": 4, "projection": "tanh"}]
    objective = MatchLayers.model_validate({"matches": matches})
    modules = objective.build(BertConfig(hidden_size=8), BertConfig(hidden_size=8))
    assert modules is not None and [*modules.state_dict()] == ["1.0.weight", "1.0.bias"]
    weight, bias = (one.detach().double().numpy() for one in modules.state_dict().values())
    terms = objective.loss(step_of({objective.name: modules}))
    expected = np.square(np.tanh(STUDENT[2] @ weight.T + bias) - TEACHER[4])[REAL == 1].mean()
    assert float(terms["match_layers/1"].detach()) == pytest.approx(expected, rel=TOLERANCE)
    terms["match_layers/1"].backward()  # type: ignore[no-untyped-call]
    assert all(parameter.grad is not None for parameter in modules.parameters())


def test_the_weight_of_an_objective_goes_linearly_to_its_end() -> None:
    objective = MatchLayers(weight=1.0, weight_end=0.2)
    assert [objective.factor(progress) for progress in (0.0, 0.5, 1.0)] == pytest.approx([1.0, 0.6, 0.2])
    assert MatchLayers(weight=2.0).factor(0.7) == 2.0 and "weight_end" not in MatchLayers().model_dump()


BODY = "{name: transformer, architecture: bert, dims: {hidden_size: 32, num_hidden_layers: 4, num_attention_heads: 2}}"
TAUGHT = """\
  student: {{kind: compress, start: answer, corpus: task, head: sequence_classification, teacher: answer,
    strategy: full, compression: {{name: select_layers, share: 0.5}},
    objective: [{{name: match_layers, matches: [{}]}}],
    budget: {{epochs: 1, length: 64}}}}"""
REFUSED = {
    "a layer that was removed": (
        "{student: 3, teacher: 4}",
        "there is no layer 3 of the student, which has 2; match layers from 0, the embeddings, to 2",
    ),
    "a layer that is not there": ("{student: 2, teacher: 5}", "there is no layer 5 of the teacher, which has 4"),
    "a negative layer": ("{student: -1, teacher: 4}", "layers are counted from 0"),
    "two layers of one": (
        "{student: 1, teacher: 2, loss: layer_flow}",
        "layer_flow needs two layers, [lower, upper], of the student and of the teacher",
    ),
    "attention of the embeddings": (
        "{student: 0, teacher: 2, loss: scores}",
        "scores compares attention of one layer with that of another, from 1 upwards",
    ),
    "attention through a projection": (
        "{student: 1, teacher: 2, loss: scores, projection: linear}",
        "scores: attention has no width",
    ),
}


@pytest.mark.parametrize(("match", "says"), REFUSED.values(), ids=REFUSED)
def test_a_match_that_cannot_be_is_refused(match: str, says: str, tmp_path: Path) -> None:
    message = refusal(tmp_path, "meeting", labelled(TAUGHT.format(match), general={"backbone": BODY}))
    check_refusal(message, (says, "objective"))
