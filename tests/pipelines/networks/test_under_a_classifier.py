"""Our bodies under a classifier: padding changes nothing, whatever represents the text."""

from __future__ import annotations

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from pipelines.parts.backbones import Backbone
from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.backbones.word_vectors import WordVectorsBackbone
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.task_families import Task, TaskFamily
from pipelines.training.assembly.parameter_groups import groups_by_depth
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents

TASK = Task(TaskFamily.default(), ("email", "unittest", "xml"))
AWD = AwdLstm(hidden_size=16, inner_size=24, num_hidden_layers=2)
STATIC = WordVectorsBackbone(hidden_size=16)


@torch.no_grad()
@pytest.mark.parametrize("body", [AWD, STATIC], ids=lambda body: body.name)
@pytest.mark.parametrize("pooling", ["mean", "last", "concat"])
def test_a_text_scores_the_same_alone_and_among_longer_ones(
    tokenizer: PreTrainedTokenizerFast, body: Backbone, pooling: str
) -> None:
    torch.manual_seed(0)
    head = SequenceClassificationHead(pooling=pooling, hidden=10)
    network = head.build(body.config(tokenizer, 32), TASK).double().eval()
    texts = [text[: 20 * (at + 1)] for at, text in enumerate(documents("json")[:4])]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    together = head.signals(
        network,
        {Field.INPUT_IDS: batch["input_ids"], Field.ATTENTION_MASK: batch["attention_mask"]},
        frozenset({Signal.LOGITS, Signal.HIDDEN_STATES}),
    )
    for row, text in enumerate(texts):
        one = tokenizer(text, return_tensors="pt")
        alone = head.signals(
            network,
            {Field.INPUT_IDS: one["input_ids"], Field.ATTENTION_MASK: one["attention_mask"]},
            frozenset({Signal.LOGITS}),
        )
        torch.testing.assert_close(together[Signal.LOGITS][row], alone[Signal.LOGITS][0], atol=1e-12, rtol=0)


@pytest.mark.parametrize(("body", "layers"), [(AWD, 2), (STATIC, 0)], ids=lambda value: getattr(value, "name", ""))
def test_layers_are_found_by_their_depth(tokenizer: PreTrainedTokenizerFast, body: Backbone, layers: int) -> None:
    network = SequenceClassificationHead().build(body.config(tokenizer, 32), TASK)
    groups = groups_by_depth(network, 1e-3, 0.01)
    assert {group.depth for group in groups} == set(range(layers + 2))
    for group in groups:
        expected = ["embeddings", *(f"layers.{at}." for at in range(layers)), "classifier"][group.depth]
        assert all(expected in name for name, _ in group.parameters)
