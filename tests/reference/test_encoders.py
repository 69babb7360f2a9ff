"""Masked tokens, replaced tokens and span boundaries, against Hugging Face's networks and the equations in float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    ElectraForPreTraining,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from pipelines.backbones.transformer import Transformer
from pipelines.corruptions import TokenIds
from pipelines.corruptions.token_mask import TokenMask
from pipelines.errors import RecipeError
from pipelines.heads import Head
from pipelines.heads.masked_lm import MaskedLMHead
from pipelines.heads.replaced_tokens import ReplacedTokens
from pipelines.heads.span_boundary import SpanBoundary
from pipelines.objectives import Batch, Companion, TrainingStep
from pipelines.objectives.masked_lm import MaskedLM
from pipelines.objectives.replaced_token_detection import ReplacedTokenDetection, _sample
from pipelines.objectives.span_boundary import SpanBoundaryObjective
from pipelines.vocabulary import Field, Signal
from tests.companions import Beside
from tests.small_corpus import documents

GATHERED = 1e-5
"""Absolute: another order of float32 sums over logits of about one."""
EXACT = 1e-6
"""Relative: the same float32 numbers, summed in another order."""


def build(head: Head, architecture: str, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Transformer(architecture=architecture, positions=None).tiny().config(tokenizer, 64)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    network = head.build(config, None)
    with torch.no_grad():  # initialised, all scores would lie within 0.1 of each other
        for value in network.parameters():
            value.add_(torch.randn_like(value) * 0.1)
    return network.eval()


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    """Six texts of different lengths with masked tokens."""
    texts = [text[: 40 * (row + 1)] for row, text in enumerate(documents("json")[:6])]
    clean = tokenizer(texts, padding="max_length", truncation=True, max_length=40, return_tensors="np")
    tokens = TokenIds(len(tokenizer), tokenizer.mask_token_id, tuple(tokenizer.all_special_ids))
    arrays = {Field.INPUT_IDS: clean["input_ids"], Field.ORIGINAL_IDS: clean["input_ids"]}
    arrays = TokenMask(mask=1.0, random=0.0).apply(arrays, tokens, np.random.default_rng(0))
    return {
        **{name: torch.from_numpy(value) for name, value in arrays.items()},
        Field.ATTENTION_MASK: torch.from_numpy(clean["attention_mask"]),
    }


def hugging_face(batch: Batch) -> dict[str, Tensor]:
    """The batch as transformers' own networks take it, labels of masked positions included."""
    labels = torch.full_like(batch[Field.INPUT_IDS], -100)
    labels.view(-1)[batch[Field.MASKED_POSITIONS]] = batch[Field.MASKED_LABELS]
    return {"input_ids": batch[Field.INPUT_IDS], "attention_mask": batch[Field.ATTENTION_MASK], "labels": labels}


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
@torch.no_grad()
def test_gathered_logits_and_loss_are_hugging_faces(
    architecture: str, batch: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    head = MaskedLMHead()
    network = build(head, architecture, tokenizer)
    theirs = network(**hugging_face(batch))
    signals = head.signals(network, batch, head.provides)
    at = batch[Field.MASKED_POSITIONS]
    torch.testing.assert_close(signals[Signal.MASKED_LOGITS], theirs.logits.flatten(0, 1)[at], atol=GATHERED, rtol=0)
    ours = MaskedLM().loss(TrainingStep(batch, signals, network, lambda *_: {}))["masked_lm"]
    assert float(ours) == pytest.approx(float(theirs.loss), rel=EXACT)


@torch.no_grad()
def test_xlnet_unmasks_tokens_as_a_denoising_encoder(
    batch: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    head = MaskedLMHead()
    network = build(head, "xlnet", tokenizer)
    said = head.signals(network, batch, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
    theirs = network(input_ids=batch[Field.INPUT_IDS], attention_mask=batch[Field.ATTENTION_MASK]).logits
    torch.testing.assert_close(said, theirs.flatten(0, 1)[batch[Field.MASKED_POSITIONS]], atol=GATHERED, rtol=0)
    moved = {**batch, Field.POSITION_IDS: torch.arange(7, 47).expand(6, -1)}
    assert torch.equal(head.signals(network, moved, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS], said)


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
@torch.no_grad()
def test_position_ids_count_from_zero_in_every_architecture(
    architecture: str, batch: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    head = MaskedLMHead()
    rows = [row for row in range(6) if bool(batch[Field.ATTENTION_MASK][row].all())]
    unpadded = {Field.INPUT_IDS: batch[Field.INPUT_IDS][rows], Field.MASKED_POSITIONS: torch.tensor([1, 5])}
    network = build(head, architecture, tokenizer)
    usual = head.signals(network, unpadded, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
    for first, same in ((0, True), (3, False)):
        stated = {**unpadded, Field.POSITION_IDS: torch.arange(first, first + 40).expand(len(rows), -1)}
        said = head.signals(network, stated, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
        assert torch.equal(said, usual) is same


def test_masked_lm_names_the_architectures_that_it_knows(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(RecipeError, match="'gpt2'; known: bert, electra, roberta, xlnet"):
        build(MaskedLMHead(), "gpt2", tokenizer)


@pytest.fixture
def electra(tokenizer: PreTrainedTokenizerFast) -> tuple[PreTrainedModel, Companion]:
    """A discriminator and the generator beside it."""
    network = build(ReplacedTokens(), "electra", tokenizer)
    companions = ReplacedTokenDetection(generator_size=0.5).companions(Beside(network))
    assert list(companions) == ["generator"]
    return network, companions["generator"]


def rewritten(network: PreTrainedModel, generator: Companion, batch: Batch) -> TrainingStep:
    """The step as it stands when the loss is asked for."""
    step = TrainingStep(batch, {}, network, lambda name, batch, wanted: generator.ask(batch, wanted))
    step.batch = ReplacedTokenDetection().rewrite(step)
    step.signals = ReplacedTokens().signals(network, step.batch, ReplacedTokens.provides)
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


def test_tokens_are_drawn_from_the_generators_distribution() -> None:
    torch.manual_seed(0)
    logits = torch.tensor([2.0, -1.0, float("-inf"), 0.5, 1.0])
    draws, count = _sample(logits.expand(200_000, -1)), 200_000
    shares = torch.bincount(draws, minlength=5) / count
    expected = torch.softmax(logits, -1)
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
    network = ReplacedTokens().build(part.config(tokenizer, 8), None)
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


@pytest.fixture(scope="module")
def spans(batch: dict[Field, Tensor]) -> dict[Field, Tensor]:
    """Two masked spans in each row, of three tokens and of one; the corruption itself is tested where it lives."""
    width = batch[Field.INPUT_IDS].shape[1]
    starts = [(row * width + begin, length) for row in range(6) for begin, length in ((2, 3), (9, 1))]
    positions = torch.tensor([at + offset for at, length in starts for offset in range(length)])
    return {
        **batch,
        Field.MASKED_POSITIONS: positions,
        Field.MASKED_LABELS: batch[Field.ORIGINAL_IDS].flatten()[positions],
        Field.SPAN_EDGES: torch.tensor([[at - 1, at + length] for at, length in starts for _ in range(length)]),
        Field.SPAN_OFFSETS: torch.tensor([offset for _, length in starts for offset in range(length)]),
    }


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
@torch.no_grad()
def test_boundary_logits_are_the_papers_equation(
    architecture: str, spans: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    head = SpanBoundary(places=3, place_size=5)
    network = build(head, architecture, tokenizer)
    said = head.signals(network, spans, head.provides)
    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
    embeddings = network.get_input_embeddings().weight.double().numpy()
    top = said[Signal.HIDDEN_STATES][-1].double().numpy()

    def layer(x: np.ndarray, name: str) -> np.ndarray:
        y = x @ weights[f"boundary.{name}.weight"].T + weights[f"boundary.{name}.bias"]
        y = y * 0.5 * (1 + torch.erf(torch.from_numpy(y) / 2**0.5).numpy())
        y = (y - y.mean()) / np.sqrt(y.var() + network.config.layer_norm_eps)
        return y * weights[f"boundary.{name}_norm.weight"] + weights[f"boundary.{name}_norm.bias"]

    width = spans[Field.INPUT_IDS].shape[1]
    expected = []
    for (before, after), place in zip(
        spans[Field.SPAN_EDGES].tolist(), spans[Field.SPAN_OFFSETS].tolist(), strict=True
    ):
        p = weights["boundary.places.weight"][place]
        x = np.concatenate([top[before // width, before % width], top[after // width, after % width], p])
        expected.append(embeddings @ layer(layer(x, "first"), "second") + weights["boundary.bias"])
    ours = said[Signal.BOUNDARY_LOGITS].double().numpy()
    # float32 over sums of some seventy terms of about one
    np.testing.assert_allclose(ours, np.array(expected), atol=2e-5)
    scores = np.array(expected)
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    labels = spans[Field.MASKED_LABELS].numpy()
    loss = SpanBoundaryObjective().loss(TrainingStep(spans, said, network, lambda *_: {}))["span_boundary"]
    assert float(loss) == pytest.approx(-logs[np.arange(len(labels)), labels].mean(), rel=1e-5)


@torch.no_grad()
def test_the_edges_alone_decide_and_far_places_share_the_last(
    spans: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    head = SpanBoundary(places=3, place_size=5)
    network = build(head, "bert", tokenizer)
    said = head.signals(network, spans, head.provides)
    # the first span's three tokens are read from the same edges and differ in their place only
    assert not torch.allclose(said[Signal.BOUNDARY_LOGITS][0], said[Signal.BOUNDARY_LOGITS][1])
    far = {**spans, Field.SPAN_OFFSETS: torch.where(spans[Field.SPAN_OFFSETS] == 2, 40, spans[Field.SPAN_OFFSETS])}
    wanted = frozenset({Signal.BOUNDARY_LOGITS})
    assert torch.equal(head.signals(network, far, wanted)[Signal.BOUNDARY_LOGITS], said[Signal.BOUNDARY_LOGITS])


@torch.no_grad()
def test_spanbert_opens_as_plain_bert(
    spans: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    head = SpanBoundary()
    network = build(head, "bert", tokenizer)
    network.save_pretrained(tmp_path)
    opened, unmatched = AutoModelForMaskedLM.from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True
    )
    assert not unmatched["missing_keys"] and {name.partition(".")[0] for name in unmatched["unexpected_keys"]} == {
        "boundary"
    }
    mine = head.signals(network, spans, head.provides)[Signal.MASKED_LOGITS]
    theirs = MaskedLMHead().signals(opened.eval(), spans, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
    assert torch.equal(mine, theirs)
