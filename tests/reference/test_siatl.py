"""SiATL against its equations in float64: attention over an LSTM's states, and a language model's loss that fades."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from pipelines.errors import RecipeError
from pipelines.networks.awd_lstm import AwdLstmConfig
from pipelines.networks.awd_lstm import register_auto_classes as register_awd_lstm
from pipelines.networks.lstm import LstmConfig
from pipelines.networks.lstm import register_auto_classes as register_lstm
from pipelines.parts.heads.attentive_classification import AttentiveClassificationHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.fading_lm import FadingLM
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field, Signal

TASK = Task(TaskFamily.model_validate("text_classification"), ("no", "yes"))
IDS = torch.tensor([[3, 7, 5, 9, 4], [8, 6, 2, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
BATCH: dict[Field, Any] = {Field.INPUT_IDS: IDS, Field.ATTENTION_MASK: MASK}


def network(size: int = 6) -> Any:
    register_awd_lstm()
    torch.manual_seed(0)
    config = AwdLstmConfig(vocab_size=12, hidden_size=4, inner_size=5, num_hidden_layers=2)
    return AttentiveClassificationHead(size=size).build(config, TASK).double().eval()


@pytest.mark.parametrize("size", [6, 0])
@torch.no_grad()
def test_a_text_is_the_weighted_sum_of_its_states(size: int) -> None:
    """e = tanh(w · h + b), a = softmax(e), r = Σ a h over the tokens of the text alone."""
    built = network(size)
    outputs = built(IDS, MASK)
    weights = {name: value.numpy() for name, value in built.state_dict().items()}
    for row, length in enumerate((5, 3)):
        states = built.base_model(IDS[row : row + 1, :length]).last_hidden_state
        states = (states if built.lstm is None else built.lstm(states)[0])[0].numpy()
        energies = np.exp(np.tanh(states @ weights["attention.weight"][0] + weights["attention.bias"][0]))
        attention = energies / energies.sum()
        wanted = weights["classifier.weight"] @ (attention @ states) + weights["classifier.bias"]
        # the softmax is in float32
        assert outputs.logits[row].numpy() == pytest.approx(wanted, abs=1e-6)
        assert outputs.weights[row, :length].numpy() == pytest.approx(attention, abs=1e-6)
        assert not outputs.weights[row, length:].any()


def test_the_language_model_beside_the_classes_fades_from_its_weight() -> None:
    built, head = network(), AttentiveClassificationHead(size=6)
    signals = head.signals(built, BATCH, frozenset({Signal.NEXT_LOGITS}))
    states = built.base_model(IDS).last_hidden_state
    scores = states @ built.base_model.embeddings.weight.T
    assert torch.allclose(signals[Signal.NEXT_LOGITS], scores)
    # the next tokens of both texts, padding is none
    targets = torch.tensor([[7, 5, 9, 4, -100], [6, 2, -100, -100, -100]])
    whole = cross_entropy(scores.flatten(0, 1), targets.flatten())
    objective = FadingLM(last=0.5)
    for progress, factor in ((0.0, 1.0), (0.5, math.sqrt(0.5)), (1.0, 0.5)):
        step = TrainingStep(BATCH, signals, built, lambda *_: {}, progress=progress)
        (term,) = objective.loss(step).values()
        assert float(term.detach()) == pytest.approx(factor * float(whole.detach()), rel=1e-5)
    assert objective.counts(BATCH, built) == {"fading_lm": 6}


def test_a_backbone_that_does_not_score_with_its_embeddings_is_refused() -> None:
    register_lstm()
    built = AttentiveClassificationHead().build(LstmConfig(vocab_size=12, hidden_size=4), TASK)
    with pytest.raises(RecipeError, match="those of this lstm are not tied to its output; use a backbone that ties"):
        AttentiveClassificationHead().signals(built, BATCH, frozenset({Signal.NEXT_LOGITS}))
