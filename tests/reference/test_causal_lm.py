"""Language modelling from left to right, against Hugging Face's own loss and against float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.networks.vocabulary_loss import CHUNK, IGNORED, vocabulary_cross_entropy
from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.vocabulary import Ability, Field, Signal
from tests.small_corpus import documents

HEAD = CausalLMHead()


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    texts = tokenizer(
        sorted(documents("json"), key=len)[:5], padding=True, truncation=True, max_length=48, return_tensors="pt"
    )
    assert 0 in texts["attention_mask"]
    return {Field.INPUT_IDS: texts["input_ids"], Field.ATTENTION_MASK: texts["attention_mask"]}


def network() -> PreTrainedModel:
    torch.manual_seed(0)
    return HEAD.build(
        GPT2Config(vocab_size=512, n_embd=32, n_layer=2, n_head=2, n_positions=64, eos_token_id=3), None
    ).eval()


def loss(network: PreTrainedModel, batch: Mapping[Field, Any], objective: CausalLM) -> Tensor:
    said = HEAD.signals(network, batch, objective.needs_signals)
    return objective.loss(TrainingStep(batch, said, network, lambda *_: {}))["causal_lm"]


def test_the_loss_and_its_gradient_are_gpt2s_own(batch: dict[Field, Tensor]) -> None:
    ours, theirs = network(), network()
    assert isinstance(theirs, GPT2LMHeadModel)
    ids, mask = batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK]
    expected = theirs(ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss
    told = loss(ours, batch, CausalLM())
    assert float(told.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    expected.backward()
    told.backward()
    for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
        # sums over 200 tokens in another order
        torch.testing.assert_close(mine.grad, its.grad, atol=1e-6, rtol=1e-4)


def test_framing_tokens_are_left_out_on_request(batch: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast) -> None:
    assert tokenizer.sep_token_id == 3
    body = network()
    with torch.no_grad():
        chances = (
            body(batch[Field.INPUT_IDS], attention_mask=batch[Field.ATTENTION_MASK]).logits.double().log_softmax(-1)
        )
        told = loss(body, batch, CausalLM(specials=False))
    rows = zip(batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK], strict=True)
    texts = [[int(i) for i, real in zip(ids, mask, strict=True) if real] for ids, mask in rows]
    terms = [
        -chances[row, at - 1, token]
        for row, ids in enumerate(texts)
        for at, token in enumerate(ids)
        if at and token != 3
    ]
    assert float(told) == pytest.approx(float(torch.stack(terms).mean()), rel=1e-6)
    assert float(told) != pytest.approx(float(loss(body, batch, CausalLM()).detach()), rel=1e-6)


@pytest.mark.parametrize(("kind", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6), (torch.bfloat16, 4e-3)])
def test_the_chunked_loss_is_torchs(kind: torch.dtype, tolerance: float) -> None:
    random = torch.Generator().manual_seed(0)
    scores = (torch.randn(CHUNK + 7, 11, generator=random, dtype=torch.float64) * 3).to(kind).requires_grad_()
    targets = torch.randint(11, (CHUNK + 7,), generator=random)
    targets[::5] = IGNORED
    exact = scores.detach().double().requires_grad_()
    ours, theirs = vocabulary_cross_entropy(scores, targets), torch.nn.functional.cross_entropy(exact, targets)
    (3 * ours).backward()
    (3 * theirs).backward()
    assert float(ours.detach()) == pytest.approx(float(theirs.detach()), rel=min(tolerance, 1e-6))
    assert scores.grad is not None and scores.grad.dtype is kind
    torch.testing.assert_close(scores.grad.double(), exact.grad, atol=tolerance * 1e-2, rtol=tolerance)
    assert float(vocabulary_cross_entropy(scores.detach(), torch.full_like(targets, IGNORED))) == 0


@torch.no_grad()
def test_padding_behind_a_row_changes_nothing_and_its_vector_is_its_last_token(batch: dict[Field, Tensor]) -> None:
    body, wanted = network(), frozenset({Signal.NEXT_LOGITS, Signal.POOLED, Signal.HIDDEN_STATES})
    together = HEAD.signals(body, batch, wanted)
    for row, length in enumerate(batch[Field.ATTENTION_MASK].sum(1).tolist()):
        alone = HEAD.signals(body, {Field.INPUT_IDS: batch[Field.INPUT_IDS][row : row + 1, :length]}, wanted)
        for signal, mine in (
            (Signal.NEXT_LOGITS, together[Signal.NEXT_LOGITS][row, :length]),
            (Signal.POOLED, together[Signal.POOLED][row]),
        ):
            torch.testing.assert_close(mine, alone[signal][0], atol=1e-5, rtol=0)
        assert torch.equal(alone[Signal.POOLED][0], alone[Signal.HIDDEN_STATES][-1][0, -1])
    assert len(together[Signal.HIDDEN_STATES]) == 3
    assert np.isfinite(together[Signal.NEXT_LOGITS].numpy()).all()


def test_a_recurrent_body_goes_on_from_its_memory_and_says_its_output_before_dropout(
    batch: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast
) -> None:
    torch.manual_seed(0)
    body = HEAD.build(AwdLstm().tiny().config(tokenizer, 48), None).eval()
    ids, wanted = batch[Field.INPUT_IDS][:, :32], frozenset({Signal.NEXT_LOGITS, Signal.MEMORY, Signal.ACTIVATIONS})
    asks = HEAD.needs_ability_for
    assert (asks[Signal.MEMORY], asks[Signal.ACTIVATIONS]) == (Ability.MEMORY, Ability.RECURRENT) and len(ids[0]) == 32
    whole = HEAD.signals(body, {Field.INPUT_IDS: ids}, wanted)
    first = HEAD.signals(body, {Field.INPUT_IDS: ids[:, :20]}, wanted)
    assert all(not memory.requires_grad for memory in first[Signal.MEMORY])
    second = HEAD.signals(body, {Field.INPUT_IDS: ids[:, 20:], Field.MEMORY: first[Signal.MEMORY]}, wanted)
    both = torch.cat([first[Signal.NEXT_LOGITS], second[Signal.NEXT_LOGITS]], 1)
    torch.testing.assert_close(both, whole[Signal.NEXT_LOGITS], atol=1e-5, rtol=0)
    dropped, raw = whole[Signal.ACTIVATIONS]
    assert torch.equal(dropped, raw), "nothing is dropped while a network answers"
    dropped, raw = HEAD.signals(body.train(), {Field.INPUT_IDS: ids}, wanted)[Signal.ACTIVATIONS]
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], raw[kept] / (1 - body.config.output_dropout))
    assert 0 < kept.float().mean() < 1
