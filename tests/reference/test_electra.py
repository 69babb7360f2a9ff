"""ELECTRA: both losses, the sampling and what generator and discriminator share (Clark et al. 2020, §3)."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForPreTraining,
    ElectraForPreTraining,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.heads.replaced_tokens import ReplacedTokensHead
from pipelines.parts.objectives import Batch, Companion, TrainingStep
from pipelines.parts.objectives.replaced_token_detection import ReplacedTokenDetection
from pipelines.vocabulary import Field, Signal
from tests.companions import Beside
from tests.reference.masked_text import EXACT, GATHERED, build, hugging_face, masked_batch


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    return masked_batch(tokenizer)


@pytest.fixture
def electra(tokenizer: PreTrainedTokenizerFast) -> tuple[PreTrainedModel, Companion]:
    """A discriminator and the generator beside it."""
    network = build(ReplacedTokensHead(), "electra", tokenizer)
    companions = ReplacedTokenDetection(generator_size=0.5).companions(Beside(network))
    assert list(companions) == ["generator"]
    return network, companions["generator"]


def rewritten(network: PreTrainedModel, generator: Companion, batch: Batch) -> TrainingStep:
    """The step as it stands when the loss is asked for."""
    step = TrainingStep(batch, {}, network, lambda name, batch, wanted: generator.forward(batch, wanted))
    step.batch = ReplacedTokenDetection().rewrite(step)
    step.signals = ReplacedTokensHead().signals(network, step.batch, ReplacedTokensHead.provides)
    return step


@torch.no_grad()
def test_both_losses_of_electra_are_hugging_faces(
    electra: tuple[PreTrainedModel, Companion], batch: dict[Field, Tensor]
) -> None:
    network, generator = electra
    step = rewritten(network, generator, batch)
    terms = ReplacedTokenDetection(discriminator=50.0).loss(step)
    assert float(terms["generator"]) == pytest.approx(float(generator.network(**hugging_face(batch)).loss), rel=EXACT)
    inputs = {"input_ids": step.batch[Field.INPUT_IDS], "attention_mask": step.batch[Field.ATTENTION_MASK]}
    theirs = network(**inputs, labels=step.batch[Field.REPLACED])
    torch.testing.assert_close(step.signals[Signal.REPLACED_LOGITS], theirs.logits, atol=GATHERED, rtol=0)
    assert float(terms["replaced_token_detection"]) == pytest.approx(50 * float(theirs.loss), rel=EXACT)
    # a batch in which nothing is padded carries no mask
    rows = inputs["attention_mask"].bool().all(1)
    step.batch = {
        Field.REPLACED: step.batch[Field.REPLACED][rows],
        Field.MASKED_LABELS: step.batch[Field.MASKED_LABELS],
    }
    step.signals = {Signal.REPLACED_LOGITS: step.signals[Signal.REPLACED_LOGITS][rows]}
    assert 0 < int(rows.sum()) < len(rows)
    theirs = network(inputs["input_ids"][rows], labels=step.batch[Field.REPLACED])
    ours = ReplacedTokenDetection(discriminator=1.0).loss(step)["replaced_token_detection"]
    assert float(ours) == pytest.approx(float(theirs.loss), rel=EXACT)


def test_replaced_are_the_sampled_tokens_that_are_not_the_true_ones(
    electra: tuple[PreTrainedModel, Companion], batch: dict[Field, Tensor]
) -> None:
    network, generator = electra
    # a generator that is right half of the time: chance must not decide what this test sees
    torch.manual_seed(0)
    true = torch.nn.functional.one_hot(batch[Field.MASKED_LABELS], network.config.vocab_size) * 30.0
    true[::2] = true[::2].roll(1, dims=-1)
    step = TrainingStep(batch, {}, network, lambda *_: {Signal.MASKED_LOGITS: true})
    after = ReplacedTokenDetection().rewrite(step)
    assert torch.equal(after[Field.REPLACED], (after[Field.INPUT_IDS] != batch[Field.ORIGINAL_IDS]).long())
    assert int(after[Field.REPLACED].sum()) == -(-len(true) // 2)
    elsewhere = torch.ones(after[Field.INPUT_IDS].numel(), dtype=torch.bool)
    elsewhere[batch[Field.MASKED_POSITIONS]] = False
    assert torch.equal(after[Field.INPUT_IDS].flatten()[elsewhere], batch[Field.INPUT_IDS].flatten()[elsewhere])
    torch.manual_seed(1)
    first = rewritten(network, generator, batch).batch[Field.INPUT_IDS]
    torch.manual_seed(1)
    assert torch.equal(rewritten(network, generator, batch).batch[Field.INPUT_IDS], first)
    torch.manual_seed(2)
    assert not torch.equal(rewritten(network, generator, batch).batch[Field.INPUT_IDS], first)


def test_tokens_are_drawn_from_the_generators_distribution(electra: tuple[PreTrainedModel, Companion]) -> None:
    network, _ = electra
    torch.manual_seed(0)
    count, scores = 200_000, torch.tensor([2.0, -1.0, float("-inf"), 0.5, 1.0])
    batch = {
        Field.INPUT_IDS: torch.zeros(1, count, dtype=torch.int64),
        Field.MASKED_POSITIONS: torch.arange(count),
        Field.MASKED_LABELS: torch.zeros(count, dtype=torch.int64),
    }
    step = TrainingStep(batch, {}, network, lambda *_: {Signal.MASKED_LOGITS: scores.expand(count, -1)})
    shares = torch.bincount(ReplacedTokenDetection().rewrite(step)[Field.INPUT_IDS].flatten(), minlength=5) / count
    expected = torch.softmax(scores, -1)
    # five standard deviations of a binomial; what has no chance is never drawn
    assert torch.all((shares - expected).abs() <= 5 * (expected * (1 - expected) / count).sqrt())
    assert shares[2] == 0


def test_embeddings_are_one_parameter_with_one_gradient_from_both(
    electra: tuple[PreTrainedModel, Companion], batch: dict[Field, Tensor]
) -> None:
    network, generator = electra
    ours, theirs = network.base_model.embeddings, generator.network.base_model.embeddings
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        assert getattr(ours, name).weight is getattr(theirs, name).weight
    assert generator.network.get_output_embeddings().weight is ours.word_embeddings.weight
    step = rewritten(network, generator, batch)
    terms = ReplacedTokenDetection().loss(step)
    shared = ours.word_embeddings.weight
    parts = [torch.autograd.grad(term, shared, retain_graph=True)[0] for term in terms.values()]
    assert all(bool(part.abs().sum() > 0) for part in parts)
    sum(terms.values()).backward()
    torch.testing.assert_close(shared.grad, parts[0] + parts[1], atol=1e-5, rtol=1e-4)


def test_no_gradient_passes_through_the_sampling(
    electra: tuple[PreTrainedModel, Companion], batch: dict[Field, Tensor]
) -> None:
    network, generator = electra
    step = rewritten(network, generator, batch)
    ReplacedTokenDetection().loss(step)["replaced_token_detection"].backward()
    shared = {id(value) for value in network.parameters()}
    own = [value for value in generator.network.parameters() if id(value) not in shared]
    assert own and all(value.grad is None for value in own)


@pytest.mark.parametrize(("size", "expected"), [(0.25, (64, 1, 256)), (1 / 3, (85, 1, 341)), (0.5, (128, 2, 512))])
def test_the_generator_is_narrower_and_as_deep(
    size: float, expected: tuple[int, int, int], tokenizer: PreTrainedTokenizerFast
) -> None:
    part = Transformer(architecture="electra", dims={"num_hidden_layers": 1})  # ELECTRA-small's widths
    network = ReplacedTokensHead().build(part.config(tokenizer, 8), None)
    config = ReplacedTokenDetection(generator_size=size).companions(Beside(network))["generator"].network.config
    assert (config.hidden_size, config.num_attention_heads, config.intermediate_size) == expected
    assert config.num_hidden_layers == 1 and config.embedding_size == network.config.embedding_size == 128
    assert network.config.hidden_size == 256, "the discriminator stays as it was"


def test_the_discriminator_alone_is_handed_over(electra: tuple[PreTrainedModel, Companion], tmp_path: Path) -> None:
    network, _ = electra
    network.save_pretrained(tmp_path)
    opened, unmatched = AutoModelForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert isinstance(opened, ElectraForPreTraining) and not any(unmatched.values())
    assert sum(p.numel() for p in opened.parameters()) == sum(p.numel() for p in network.parameters())
