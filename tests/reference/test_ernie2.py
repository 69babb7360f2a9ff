"""ERNIE 2.0's classes of tokens and rows in float64, and its tasks learned in one body with vectors of their own."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from pipelines.networks.channel_embeddings import attach
from pipelines.parts.corruptions.row_rearrangement import ROW_LABELS
from pipelines.parts.corruptions.sentence_distance import SentenceDistance
from pipelines.parts.embeddings.task_numbers import TaskEmbedding
from pipelines.parts.heads.row_classes import ROW_LOGITS, RowClassesHead
from pipelines.parts.heads.token_classes import TokenClassesHead
from pipelines.parts.layouts.windows import Windows
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.row_classes import RowClassesObjective
from pipelines.parts.objectives.tag_cross_entropy import TagCrossEntropy
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.vocabulary import Field, Signal
from tests.reference.masked_text import build
from tests.small_corpus import documents
from tests.streams import stream_of


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    stream = stream_of(documents("logging", "json"), tokenizer)
    made = PlainBatches(stream, tokenizer, Windows(), (SentenceDistance(),), rows=16, length=40, steps=1, seed=3)
    arrays = made.batch(0)
    arrays[ROW_LABELS][4] = -100
    assert {0, 1, 2} <= set(arrays[ROW_LABELS].tolist())
    return {name: torch.from_numpy(value) for name, value in arrays.items()}


def log_softmax(scores: np.ndarray) -> np.ndarray:
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


@torch.no_grad()
def test_rows_are_scored_by_their_pooled_first_state(
    batch: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    head = RowClassesHead(classes=3)
    network = build(head, "bert", tokenizer)
    states = network.base_model(
        input_ids=batch[Field.INPUT_IDS],
        attention_mask=batch[Field.ATTENTION_MASK],
        token_type_ids=batch[Field.TOKEN_TYPE_IDS],
    ).last_hidden_state
    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
    first = states[:, 0].double().numpy()
    pooled = np.tanh(first @ weights["bert.pooler.dense.weight"].T + weights["bert.pooler.dense.bias"])
    logs = log_softmax(pooled @ weights["classifier.weight"].T + weights["classifier.bias"])
    signals = head.signals(network, batch, head.provides)
    np.testing.assert_allclose(signals[ROW_LOGITS].log_softmax(-1).numpy(), logs, atol=1e-5)
    labels = batch[ROW_LABELS].numpy()
    rows = np.flatnonzero(labels >= 0)
    step = TrainingStep(batch, signals, network, lambda *_: {})
    assert float(RowClassesObjective().loss(step)["row_classes"]) == pytest.approx(
        -logs[rows, labels[rows]].mean(), rel=1e-5
    )
    assert RowClassesObjective().counts(batch, network) == {"row_classes": len(rows)}
    none = {**batch, ROW_LABELS: torch.full((16,), -100)}
    step = TrainingStep(none, signals, network, lambda *_: {})
    assert float(RowClassesObjective().loss(step)["row_classes"]) == 0


@torch.no_grad()
def test_tokens_are_scored_by_their_states(batch: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast) -> None:
    head = TokenClassesHead(classes=2)
    network = build(head, "bert", tokenizer)
    labels = torch.where(batch[Field.INPUT_IDS] % 3 > 0, batch[Field.INPUT_IDS] % 2, -100)
    labelled = {**batch, Field.TAG_LABELS: labels}
    signals = head.signals(network, labelled, head.provides)
    states = network.base_model(
        input_ids=batch[Field.INPUT_IDS],
        attention_mask=batch[Field.ATTENTION_MASK],
        token_type_ids=batch[Field.TOKEN_TYPE_IDS],
    ).last_hidden_state
    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
    logs = log_softmax(states.double().numpy() @ weights["classifier.weight"].T + weights["classifier.bias"])
    chosen = labels.numpy() >= 0
    expected = -np.take_along_axis(logs[chosen], labels.numpy()[chosen][:, None], axis=1).mean()
    loss = TagCrossEntropy().loss(TrainingStep(labelled, signals, network, lambda *_: {}))["tag_cross_entropy"]
    assert signals[Signal.TAG_LOGITS].shape == (16, 40, 2) and float(loss) == pytest.approx(expected, rel=1e-5)


@torch.no_grad()
def test_the_vector_of_the_task_is_added_to_that_of_each_token() -> None:
    torch.manual_seed(0)
    config = BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    plain = BertModel(config).eval()
    read = deepcopy(plain)
    attach(read, [TaskEmbedding(size=3)])
    table = read.get_parameter("embeddings.word_embeddings.channels.task_numbers.rows.weight")
    ids = torch.randint(5, 40, (2, 9))
    for task in range(3):
        channels = {"tasks": torch.full((2, 9), task)}
        expected = plain(inputs_embeds=plain.get_input_embeddings()(ids) + table[task]).last_hidden_state
        torch.testing.assert_close(read(input_ids=ids, channels=channels).last_hidden_state, expected)
