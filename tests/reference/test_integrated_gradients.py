"""Integrated gradients against their closed form, and against transformers' own networks in float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from pipelines.errors import RecipeError
from pipelines.judging.evaluations.path_gradients import integrated_gradients


class LogisticWords(PreTrainedModel):
    """Two classes with the logits 0 and w · Σ e(token)."""

    config_class = PretrainedConfig

    def __init__(self, weight: torch.Tensor, vectors: torch.Tensor) -> None:
        super().__init__(PretrainedConfig())
        self.vectors, self.weight = nn.Embedding.from_pretrained(vectors), weight

    def get_input_embeddings(self) -> nn.Module:
        return self.vectors

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SequenceClassifierOutput:
        score = (self.vectors(input_ids) @ self.weight).sum(1)
        return SequenceClassifierOutput(logits=torch.stack([torch.zeros_like(score), score], dim=1))


class Twice(LogisticWords):
    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SequenceClassifierOutput:
        super().forward(input_ids, attention_mask)
        return super().forward(input_ids, attention_mask)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value))


def test_of_a_logistic_regression_they_divide_the_difference_by_the_shares_of_the_score() -> None:
    generator = torch.Generator().manual_seed(0)
    vectors, weight = torch.randn(9, 5, generator=generator), torch.randn(5, generator=generator)
    ids, frame = torch.tensor([1, 4, 4, 7, 2]), torch.tensor([True, False, False, False, True])
    given = integrated_gradients(LogisticWords(weight, vectors), ids, frame, 1, 2000, "a@0")
    scores = (vectors[ids] @ weight).double()
    # the path only scales the words: Σ over it of p'(z) · w · e is the word's share of the change of z times that of p
    frames, words = float(scores[frame].sum()), scores.masked_fill(frame, 0.0)
    difference = sigmoid(frames + float(words.sum())) - sigmoid(frames)
    wanted = words / words.sum() * difference
    torch.testing.assert_close(given.tokens.double(), wanted, atol=1e-6, rtol=1e-4)
    assert given.difference == pytest.approx(difference, abs=1e-6) and given.error < 1e-6


def test_of_bert_they_are_those_of_its_embedded_inputs() -> None:
    torch.manual_seed(1)
    config = BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, num_labels=3,
                        intermediate_size=32, initializer_range=0.4, max_position_embeddings=16)  # fmt: skip
    network = BertForSequenceClassification(config).eval().requires_grad_(False)
    ids, frame, steps, target = torch.tensor([2, 9, 21, 9, 5, 3]), torch.tensor([True, *[False] * 4, True]), 7, 2
    given = integrated_gradients(network, ids, frame, target, steps, "a@0")
    reference = BertForSequenceClassification(config).eval().double()
    reference.load_state_dict({name: value.double() for name, value in network.state_dict().items()})
    embedded = reference.get_input_embeddings()(ids).detach()
    start = embedded * frame[:, None]
    total = torch.zeros_like(embedded)
    for step in range(steps):
        point = (start + (step + 0.5) / steps * (embedded - start)).requires_grad_()
        reference(inputs_embeds=point[None]).logits.softmax(-1)[0, target].backward()
        total += point.grad / steps
    torch.testing.assert_close(given.tokens.double(), (total * (embedded - start)).sum(-1), atol=1e-6, rtol=1e-4)
    ends = [reference(inputs_embeds=one[None]).logits.softmax(-1)[0, target] for one in (start, embedded)]
    assert given.difference == pytest.approx(float((ends[1] - ends[0]).detach()), abs=1e-6)
    finer = integrated_gradients(network, ids, frame, target, 400, "a@0")
    assert finer.error < 1e-4, "their sum is the difference of the ends of the path"
    assert all(one.grad is None for one in network.parameters())


def test_a_network_that_looks_its_words_up_in_another_way_is_refused() -> None:
    ids, frame = torch.tensor([1, 2]), torch.zeros(2, dtype=torch.bool)
    with pytest.raises(RecipeError, match="attribution: twice@3 does not look up one embedding for each token"):
        integrated_gradients(Twice(torch.ones(2), torch.ones(3, 2)), ids, frame, 1, 2, "twice@3")
