"""Masked tokens in every bidirectional architecture, against Hugging Face's own networks."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers import (
    PreTrainedTokenizerFast,
)

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.masked_lm import MaskedLM
from pipelines.vocabulary import Field, Signal
from tests.reference.masked_text import EXACT, GATHERED, build, hugging_face, masked_batch


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    return masked_batch(tokenizer)


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
    known = [one.name for one in Architecture.all() if one.masked_lm]
    assert {"bert", "roberta", "electra", "xlnet"} <= {*known} and "gpt2" not in known
    with pytest.raises(RecipeError, match=f"'gpt2'; supported: {', '.join(known)}$"):
        build(MaskedLMHead(), "gpt2", tokenizer)
