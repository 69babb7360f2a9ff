"""Scores of attention are those of Hugging Face's attention, and their losses the papers' equations in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import BertConfig, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.networks.shape import NetworkShape
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.compressions.head_pruning import attention_heads
from pipelines.parts.heads import Head
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.match_attention import MatchAttention
from pipelines.task_families import Task
from pipelines.task_families.text_classification import TextClassification
from pipelines.vocabulary import Ability, Field, Signal

ABLE = [one.name for one in Architecture.all() if Ability.ATTENTION_SCORES in one.offers]
SCORES = frozenset({Signal.ATTENTION_SCORES})
TASK = Task(TextClassification(), ("a", "b"))


def network_of(architecture: str, head: str, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Transformer(architecture=architecture).tiny().config(tokenizer, 16)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    network = Head.model_validate(head).build(config, None if head == "masked_lm" else TASK).eval()
    with torch.no_grad():  # fresh weights are so small that all tokens are attended to alike
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network


def batch_of() -> dict[Field, Tensor]:
    ids = torch.randint(5, 200, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 6:] = mask[2, 2:] = 0
    return {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: mask, Field.MASKED_POSITIONS: torch.tensor([1, 4])}


@pytest.mark.parametrize("head", ["masked_lm", "sequence_classification"])
@pytest.mark.parametrize("architecture", ABLE)
@torch.no_grad()
def test_their_softmax_is_what_hugging_face_attends_to(
    architecture: str, head: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    network, batch = network_of(architecture, head, tokenizer), batch_of()
    scores = Head.model_validate(head).signals(network, batch, SCORES)[Signal.ATTENTION_SCORES]
    inputs = {"input_ids": batch[Field.INPUT_IDS], "attention_mask": batch[Field.ATTENTION_MASK]}
    expected = network.base_model(**inputs, output_attentions=True).attentions
    assert len(scores) == len(expected) == 2
    padding = (batch[Field.ATTENTION_MASK] == 0)[:, None, None, :]
    for mine, theirs in zip(scores, expected, strict=True):
        attended = mine.masked_fill(padding, float("-inf")).softmax(-1)
        torch.testing.assert_close(attended, theirs, rtol=1e-4, atol=1e-5)
        assert theirs.std() > 0.05, "not all alike"


def test_a_gradient_reaches_the_projections_and_what_is_below(tokenizer: PreTrainedTokenizerFast) -> None:
    network = network_of("bert", "masked_lm", tokenizer)
    scores = Head.model_validate("masked_lm").signals(network, batch_of(), SCORES)[Signal.ATTENTION_SCORES]
    scores[1].square().sum().backward()
    layers = network.base_model.encoder.layer
    moved = (layers[1].attention.self.query, layers[1].attention.self.key, layers[0].output.dense)
    assert all(bool(module.weight.grad.any()) for module in moved)
    assert layers[1].attention.self.value.weight.grad is None


def test_a_layer_without_some_heads_has_fewer_scores(tokenizer: PreTrainedTokenizerFast) -> None:
    from pipelines.networks.attention_heads import remove_heads

    network, head = network_of("bert", "masked_lm", tokenizer), Head.model_validate("masked_lm")
    whole = head.signals(network, batch_of(), SCORES)[Signal.ATTENTION_SCORES]
    remove_heads(attention_heads(network), {"encoder.layer.0": [0]})
    left = head.signals(network, batch_of(), SCORES)[Signal.ATTENTION_SCORES]
    assert [one.shape[1] for one in left] == [1, 2]
    torch.testing.assert_close(left[0], whole[0][:, 1:])


def values_of(objective: MatchAttention, batch: Mapping[Field, Tensor], own: Any, teacher: Any) -> float:
    signals = {Signal.ATTENTION_SCORES: tuple(torch.from_numpy(one) for one in own)}
    others = {Signal.ATTENTION_SCORES: tuple(torch.from_numpy(one) for one in teacher)}
    step = TrainingStep(batch, signals, torch.nn.Identity(), lambda *_: others)  # type: ignore[arg-type]
    return float(objective.loss(step)["match_attention"])


def random_scores(layers: int, heads: int) -> list[NDArray[np.float64]]:
    random = np.random.default_rng(layers)
    return [2 * random.normal(size=(3, heads, 9, 9)) for _ in range(layers)]


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    result: NDArray[np.float64] = powers / powers.sum(-1, keepdims=True)
    return result


@pytest.mark.parametrize("heads", ["each", "mean"])
@pytest.mark.parametrize("compare", ["scores", "distributions"])
def test_the_losses_are_the_equations(compare: str, heads: str) -> None:
    batch, own, teacher = batch_of(), random_scores(2, 2), random_scores(6, 2)
    lengths = batch[Field.ATTENTION_MASK].sum(1).tolist()
    terms = []
    for student, other in zip(own, (teacher[2], teacher[5]), strict=True):  # the uniform map: 1 → 3, 2 → 6
        values = []
        for row, length in enumerate(lengths):
            s, t = student[row, :, :length, :length], other[row, :, :length, :length]
            if compare == "distributions":
                s, t = softmax(s), softmax(t)
            if heads == "mean":
                s, t = s.mean(0, keepdims=True), t.mean(0, keepdims=True)
            values.append(((s - t) ** 2 if compare == "scores" else (t * np.log(t / s)).sum(-1)).reshape(len(s), -1))
        terms.append(np.concatenate(values, axis=1).mean())
    objective = MatchAttention(compare=compare, heads=heads)  # type: ignore[arg-type]
    assert values_of(objective, batch, own, teacher) == pytest.approx(float(np.mean(terms)), rel=1e-5)
    counted = objective.counts(batch, torch.nn.Identity())["match_attention"]  # type: ignore[arg-type]
    assert counted == (sum(length**2 for length in lengths) if compare == "scores" else sum(lengths))


@pytest.mark.parametrize("compare", ["scores", "distributions"])
def test_only_pairs_that_see_each_other_count(compare: str) -> None:
    """What lies between documents, or is hidden by a pattern, may be anything."""
    own, teacher = random_scores(1, 2), random_scores(2, 2)[1:]
    starts = torch.zeros(3, 9, dtype=torch.long)
    starts[:, [0, 4]] = 1
    ids = torch.ones(3, 9, dtype=torch.long)
    document = starts.cumsum(1)
    visible = document[:, :, None] == document[:, None, :]
    objective = MatchAttention(compare=compare)  # type: ignore[arg-type]
    batches = ({Field.DOCUMENT_STARTS: starts}, {Field.VISIBLE: visible})
    values = {values_of(objective, {Field.INPUT_IDS: ids, **one}, own, teacher) for one in batches}
    noisy = [np.where(visible.numpy()[:, None], one, 50 * one) for one in own]
    values |= {values_of(objective, {Field.INPUT_IDS: ids, **one}, noisy, teacher) for one in batches}
    assert len(values) == 1 and np.isfinite(values.pop())


def test_heads_that_correspond_to_none_are_refused() -> None:
    two, four = (NetworkShape.of(BertConfig(hidden_size=16, num_attention_heads=heads)) for heads in (2, 4))
    message = "the student has 2 attention heads and its teacher 4, so that none corresponds"
    assert message in str(MatchAttention().unfit(two, four)) and "heads: mean" in str(MatchAttention().unfit(two, four))
    assert MatchAttention(heads="mean").unfit(two, four) is None and MatchAttention().unfit(two, two) is None
