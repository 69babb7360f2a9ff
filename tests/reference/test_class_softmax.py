"""Softmax over classes, and over a sample of the vocabulary, against the softmax over all words in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pipelines.networks.class_softmax import ClassSoftmaxLM, class_starts
from pipelines.networks.lstm import LstmConfig, LstmForCausalLM
from pipelines.networks.vocabulary_loss import IGNORED
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.parts.heads.class_lm import CLASS_STATES, ClassLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.class_lm import ClassLM
from pipelines.parts.objectives.sampled_softmax import SampledSoftmax
from pipelines.vocabulary import Field, Signal

SIZE, WIDTH = 50, 8
STARTS = [0, 1, 2, 7, 20]


def config() -> LstmConfig:
    return LstmConfig(vocab_size=SIZE, hidden_size=WIDTH)


@pytest.fixture
def network() -> ClassSoftmaxLM:
    torch.manual_seed(0)
    made = ClassSoftmaxLM(config(), STARTS).double()
    torch.nn.init.normal_(made.words.bias)
    torch.nn.init.normal_(made.classes.bias)
    return made


@pytest.fixture
def ids() -> Tensor:
    return torch.randint(0, SIZE, (4, 13), generator=torch.Generator().manual_seed(1))


def test_a_words_probability_is_that_of_its_class_times_that_in_its_class(network: ClassSoftmaxLM) -> None:
    states = torch.randn(6, WIDTH, dtype=torch.float64)
    found = network.log_probs(states)
    assert torch.allclose(found.exp().sum(-1), torch.ones(6), atol=1e-6)
    of_class = network.classes(states).softmax(-1)
    for word in range(SIZE):
        number = max(index for index, start in enumerate(STARTS) if start <= word)
        members = range(STARTS[number], [*STARTS, SIZE][number + 1])
        scores = {one: states @ network.words.weight[one] + network.words.bias[one] for one in members}
        total = torch.stack([score.exp() for score in scores.values()]).sum(0)
        expected = of_class[:, number] * scores[word].exp() / total
        torch.testing.assert_close(found[:, word].double(), expected.log(), atol=1e-5, rtol=0)


def test_the_loss_is_the_mean_of_what_it_gives_the_words(network: ClassSoftmaxLM) -> None:
    states = torch.randn(5, 9, WIDTH, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, SIZE, (5, 9), generator=torch.Generator().manual_seed(3))
    targets[0, :4] = IGNORED
    loss = network.loss(states, targets)
    expected = cross_entropy(network.log_probs(states).flatten(0, 1).double(), targets.flatten(), ignore_index=IGNORED)
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    (gradient,) = torch.autograd.grad(loss, states)
    (reference,) = torch.autograd.grad(expected, states)
    torch.testing.assert_close(gradient, reference, atol=1e-7, rtol=1e-4)


def test_only_the_classes_of_the_targets_are_scored(network: ClassSoftmaxLM) -> None:
    targets = torch.tensor([[3, 4, 25]])
    network.loss(torch.randn(1, 3, WIDTH, dtype=torch.float64), targets).backward()
    assert network.words.weight.grad is not None
    touched = torch.nonzero(network.words.weight.grad.abs().sum(1)).flatten().tolist()
    assert touched == [*range(2, 7), *range(20, SIZE)]


@pytest.mark.parametrize("classes", [1, 2, 7, 31])
def test_classes_are_ranges_of_ids_that_are_equally_probable(classes: int) -> None:
    counts = [1000 // (rank + 1) for rank in range(1000)]
    starts = class_starts(counts, classes)
    assert starts[0] == 0 and starts == sorted(set(starts)) and len(starts) <= classes
    mass = np.add.reduceat(counts, starts)
    # a class is over its share by one word at most
    assert max(mass[1:], default=0) <= sum(counts) / classes + counts[1]
    assert class_starts([5.0], classes) == [0], "a vocabulary of one word is one class"


def test_the_head_and_the_objective_predict_the_next_word(ids: Tensor) -> None:
    torch.manual_seed(0)
    head, objective = ClassLMHead(), ClassLM()
    network = head.build(config(), None)
    assert isinstance(network, ClassSoftmaxLM) and 1 < len(network.ranges) <= round(SIZE**0.5)
    batch = {Field.INPUT_IDS: ids}
    signals = head.signals(network, batch, frozenset({CLASS_STATES, Signal.NEXT_LOGITS, Signal.MEMORY}))
    assert objective.counts(batch, network) == {"class_lm": 4 * 12}
    loss = objective.loss(TrainingStep(batch, signals, network, lambda *_: {}))["class_lm"]
    expected = -signals[Signal.NEXT_LOGITS][:, :-1].gather(2, ids[:, 1:, None]).mean()
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-5)


def sampled(network: LstmForCausalLM, ids: Tensor, samples: int) -> Tensor:
    head, objective = CausalLMHead(), SampledSoftmax(samples=samples)
    batch = {Field.INPUT_IDS: ids}
    signals = head.signals(network, batch, objective.needs_signals)
    return objective.loss(TrainingStep(batch, signals, network, lambda *_: {}))["sampled_softmax"]


def test_a_sampled_softmax_is_the_papers_estimate_of_the_softmax(ids: Tensor) -> None:
    """Bengio & Senécal 2003, §3, with the samples that the generator gives, in loops."""
    torch.manual_seed(0)
    network = LstmForCausalLM(config()).double()
    torch.manual_seed(5)
    found = float(sampled(network, ids, 12).detach())
    torch.manual_seed(5)
    uniform = torch.rand(12, dtype=torch.float64).tolist()
    samples = [int((SIZE + 1) ** one - 1) for one in uniform]
    expected = [12 * math.log1p(1 / (word + 1)) / math.log1p(SIZE) for word in range(SIZE)]
    assert sum(expected) == pytest.approx(12)
    scores = network(ids).logits.detach()
    losses = []
    for row in range(4):
        for at in range(12):
            target = int(ids[row, at + 1])
            others = [math.exp(float(scores[row, at, word])) / expected[word] for word in samples if word != target]
            true = math.exp(float(scores[row, at, target]))
            losses.append(math.log(true + sum(others)) - math.log(true))
    assert found == pytest.approx(sum(losses) / len(losses), rel=1e-5)


def test_with_many_samples_its_gradient_is_that_of_the_softmax(ids: Tensor) -> None:
    torch.manual_seed(0)
    network = LstmForCausalLM(config()).double()
    weight = network.lm_head.weight
    (found,) = torch.autograd.grad(sampled(network, ids, 50_000), weight)
    loss = cross_entropy(network(ids).logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    (expected,) = torch.autograd.grad(loss, weight)
    assert float((found - expected).norm() / expected.norm()) < 0.05
