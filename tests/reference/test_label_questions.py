"""Questions about labels: the rows of each text, the scores of transformers' own pairs, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from transformers import BertConfig, BertModel

from pipelines.errors import DataError
from pipelines.parts.heads.label_questions import LabelQuestionsHead
from pipelines.parts.heads.label_sets import LABEL_SET_LOGITS, LABEL_SETS, LabelSetsHead
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field
from tests.contracts.test_heads import tokenizer_of
from tests.contracts.trials import stages

LABELS = ("array", "function", "text")
TASK = Task(TaskFamily.model_validate("label_sets"), LABELS)
ROWS = [{"text": "log a message", "labels": ["text", "array"]}, {"text": "load it", "labels": []}]
HEAD = LabelQuestionsHead(question="is it {label} ?")


def test_every_text_has_a_row_for_each_label() -> None:
    tokenizer = tokenizer_of(stages()["regime/vectors"].tokenizer)
    batch = HEAD.encode(ROWS, TASK, tokenizer, 24).batch(np.asarray([1, 0]))
    texts = [one["text"] for one in (ROWS[1], ROWS[0]) for _ in LABELS]
    questions = [f"is it {label} ?" for _ in ROWS for label in LABELS]
    width = batch[Field.INPUT_IDS].shape[1]
    wanted = tokenizer(texts, questions, padding="max_length", max_length=width, return_tensors="np")
    assert np.array_equal(batch[Field.INPUT_IDS], wanted["input_ids"])
    assert np.array_equal(batch[Field.ATTENTION_MASK], wanted["attention_mask"])
    assert batch[LABEL_SETS].tolist() == [[0, 0, 0], [1, 0, 1]]
    assert LABEL_SETS not in HEAD.encode(ROWS, TASK, tokenizer, 24, answers=False).batch(np.asarray([0]))


def test_scores_are_those_of_the_pairs_by_transformers_in_float64() -> None:
    tokenizer = tokenizer_of(stages()["regime/vectors"].tokenizer)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=32, initializer_range=0.3)  # fmt: skip
    network = HEAD.build(config, TASK).eval()
    batch = {name: torch.from_numpy(value) for name, value in
             HEAD.encode(ROWS, TASK, tokenizer, 24).batch(np.asarray([0, 1])).items()}  # fmt: skip
    with torch.no_grad():
        logits = HEAD.signals(network, batch, frozenset({LABEL_SET_LOGITS}))[LABEL_SET_LOGITS]
        reference = BertModel(config, add_pooling_layer=False).eval().double()
        reference.load_state_dict({name: value.double() for name, value in network.base_model.state_dict().items()})
        layer = network.classifier.double()
        for row, example in enumerate(ROWS):
            for column, label in enumerate(LABELS):
                pair = tokenizer(example["text"], f"is it {label} ?", return_tensors="pt")
                score = layer(reference(**pair).last_hidden_state.mean(1)).item()
                assert logits[row, column].item() == pytest.approx(score, abs=1e-5)
    assert logits.shape == (2, 3)


def test_answers_are_those_of_label_sets() -> None:
    tokenizer = tokenizer_of(stages()["regime/vectors"].tokenizer)
    encoded = HEAD.encode(ROWS, TASK, tokenizer, 24)
    logits = torch.tensor([[0.0, -1.0, 1.0], [-2.0, -2.0, -3.0]])
    outputs = [(np.asarray([1, 0]), {Field.INPUT_IDS: logits}, {LABEL_SET_LOGITS: logits})]
    network = torch.nn.Module()
    assert HEAD.answer(network, encoded, outputs, TASK, tokenizer) == LabelSetsHead().answer(
        network, encoded, outputs, TASK, tokenizer
    )


def test_questions_without_a_label_and_unknown_labels_are_refused() -> None:
    with pytest.raises(ValidationError, match="the question 'is it so\\?' is the same for all labels: write {label}"):
        LabelQuestionsHead(question="is it so?")
    tokenizer = tokenizer_of(stages()["regime/vectors"].tokenizer)
    with pytest.raises(DataError, match="example 1: no training example has its label 'shape'; known: array, function"):
        HEAD.encode([ROWS[0], {"text": "two", "labels": ["shape"]}], TASK, tokenizer, 24)
