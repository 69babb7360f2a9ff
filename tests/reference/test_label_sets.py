"""Several labels of a text against transformers' own loss, the equation in float64, and answers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification

from pipelines.errors import DataError
from pipelines.parts.heads.label_sets import LABEL_SET_LOGITS, LABEL_SETS, LabelSetsHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.label_set_cross_entropy import LabelSetCrossEntropy
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field
from tests.contracts.test_heads import tokenizer_of
from tests.contracts.trials import stages

LABELS = ("array", "function", "text")
TASK = Task(TaskFamily.model_validate("label_sets"), LABELS)
ROWS = [{"text": "one", "labels": ["text", "array"]}, {"text": "two", "labels": []}]


def tiny() -> BertConfig:
    return BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=3,
        problem_type="multi_label_classification",
    )


def test_the_loss_is_that_of_transformers_and_of_the_equation() -> None:
    torch.manual_seed(0)
    network = BertForSequenceClassification(tiny()).eval()
    targets = torch.tensor([[1.0, 0, 1], [0, 0, 0]])
    with torch.no_grad():
        network.classifier.bias.copy_(torch.tensor([2.0, -3.0, 0.5]))
        outputs = network(torch.tensor([[2, 7, 9, 3], [2, 8, 3, 0]]), labels=targets)
    step = TrainingStep({LABEL_SETS: targets}, {LABEL_SET_LOGITS: outputs.logits}, network, lambda *_: {})
    objective = LabelSetCrossEntropy()
    loss = objective.loss(step)["label_set_cross_entropy"]
    assert loss.item() == pytest.approx(outputs.loss.item(), rel=1e-6)
    logits, right = outputs.logits.double().numpy(), targets.double().numpy()
    likelihoods = -right * np.log(1 / (1 + np.exp(-logits))) - (1 - right) * np.log(1 / (1 + np.exp(logits)))
    assert loss.item() == pytest.approx(likelihoods.mean(), rel=1e-6)
    assert objective.counts({LABEL_SETS: targets}, network) == {"label_set_cross_entropy": 2}


def test_labels_become_zeros_and_ones_and_probabilities_become_answers() -> None:
    tokenizer = tokenizer_of(stages()["regime/vectors"].tokenizer)
    head = LabelSetsHead()
    encoded = head.encode(ROWS, TASK, tokenizer, 16)
    batch = encoded.batch(np.asarray([1, 0]))
    assert batch[LABEL_SETS].tolist() == [[0, 0, 0], [1, 0, 1]] and batch[LABEL_SETS].dtype == np.float32
    assert LABEL_SETS not in head.encode(ROWS, TASK, tokenizer, 16, answers=False).batch(np.asarray([0]))
    logits = torch.tensor([[0.0, -1.0, 1.0], [-2.0, -2.0, -3.0]])
    outputs = [(np.asarray([1, 0]), {Field.INPUT_IDS: logits}, {LABEL_SET_LOGITS: logits})]
    first, second = head.answer(BertForSequenceClassification(tiny()), encoded, outputs, TASK, tokenizer)
    assert list(second) == ["text", "array", "function"]
    assert second == pytest.approx({"text": 0.731058, "array": 0.5, "function": 0.268941}, abs=1e-6)
    assert list(first) == ["array", "function", "text"], "of equally probable labels, in their order"


def test_a_label_that_training_lacks_and_a_text_in_place_of_a_list_are_refused() -> None:
    tokenizer = tokenizer_of(stages()["regime/vectors"].tokenizer)
    with pytest.raises(DataError, match="example 1: no training example has its label 'shape'; known: array, function"):
        LabelSetsHead().encode([ROWS[0], {"text": "two", "labels": ["shape"]}], TASK, tokenizer, 16)
    with pytest.raises(DataError, match="example 0: its labels are 'array', expected a list of labels"):
        LabelSetsHead().encode([{"text": "one", "labels": "array"}], TASK, tokenizer, 16)
