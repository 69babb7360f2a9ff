"""Rows of whole documents as a stage reads them, and what a network says of them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from pipelines.networks.document_attention import attend_within_documents
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.layouts.packed_documents import PackedDocuments
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.parts.segmentations import Segmentation
from pipelines.parts.tokenizers.byte_bpe import ByteBPE
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents
from tests.streams import stream_of

TEXTS = [" ".join(text.split()[: 3 + number * 7 % 60]) for number, text in enumerate(documents("json", "shutil"))]
LENGTH = 64


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return WordPiece(vocab_size=600).train(TEXTS)


def packed(tokenizer: PreTrainedTokenizerFast, *corruptions: TokenMask, framed: bool = True) -> PlainBatches:
    stream = stream_of(TEXTS, tokenizer, Segmentation.model_validate("spaces"))
    shape = {"rows": 4, "length": LENGTH, "steps": 50, "seed": 0, "corruption_shards": 2}
    return PlainBatches(stream, tokenizer, PackedDocuments(framed=framed), corruptions, **shape)


def pieces(batch: dict[Field, NDArray[np.int64]]) -> list[tuple[int, slice]]:
    """The row of every document of a batch, and where it stands there; padding is none."""
    found = []
    for row, (starts, mask) in enumerate(zip(batch[Field.DOCUMENT_STARTS], batch[Field.ATTENTION_MASK], strict=True)):
        bounds = [*np.flatnonzero(starts), LENGTH]
        found += [(row, slice(a, b)) for a, b in pairwise(bounds) if mask[a]]
    return found


@pytest.mark.parametrize("framed", [True, False])
def test_a_row_holds_what_the_tokenizer_makes_of_each_text(framed: bool, tokenizer: PreTrainedTokenizerFast) -> None:
    batches = packed(tokenizer, framed=framed)
    whole = {tuple(tokenizer(text)["input_ids"][0 if framed else 1 :]) for text in TEXTS}
    fit = {ids for ids in whole if len(ids) <= LENGTH}
    seen = set()
    for step in range(batches.steps_per_epoch):
        batch = batches.batch(step)
        padded = batch[Field.ATTENTION_MASK] == 0
        assert (batch[Field.INPUT_IDS][padded] == tokenizer.pad_token_id).all()
        assert ((batch[Field.DOCUMENTS] == -1) == padded).all()
        for row, place in pieces(batch):
            ids = tuple(batch[Field.INPUT_IDS][row, place].tolist())
            seen.add(ids)
            assert np.array_equal(batch[Field.POSITION_IDS][row, place], np.arange(len(ids)))
            assert len(set(batch[Field.DOCUMENTS][row, place].tolist())) == 1
            first = place.start + (1 if framed else 0)
            assert batch[Field.WORD_STARTS][row, first] == 1 or ids not in whole, "a piece may begin inside a word"
    assert len(fit & seen) > 0.9 * len(fit), "but for a last partial batch, every text that fits is read whole"
    cut = seen - whole
    longer = [" ".join(map(str, ids)) for ids in whole - fit]
    texts = (" ".join(map(str, ids[1:-1] if framed else ids[:-1])) for ids in cut)
    assert cut and all(any(text in one for one in longer) for text in texts), "only what is longer than a row is cut"


def test_words_begin_where_they_do_in_the_text(tokenizer: PreTrainedTokenizerFast) -> None:
    batches = packed(tokenizer)
    batch = batches.batch(3)
    for row, place in pieces(batch):
        ids = batch[Field.INPUT_IDS][row, place][1:-1]
        says = batch[Field.WORD_STARTS][row, place][1:-1]
        continued = [token.startswith("##") for token in tokenizer.convert_ids_to_tokens(ids.tolist())]
        assert not says[np.asarray(continued)].any()


def test_the_pieces_of_a_batch_are_the_batch(tokenizer: PreTrainedTokenizerFast) -> None:
    batches, again = packed(tokenizer, TokenMask()), packed(tokenizer, TokenMask())
    assert batches.corruption_shards == 2
    for step in (0, 41):
        whole, halves = batches.micro_batch(step, 0, 1), [again.micro_batch(step, number, 2) for number in range(2)]
        for name in (Field.INPUT_IDS, Field.DOCUMENT_STARTS, Field.POSITION_IDS, Field.ATTENTION_MASK):
            assert torch.equal(whole[name], torch.cat([half[name] for half in halves])), name


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
def test_masked_tokens_are_scored_as_in_their_document_alone(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    torch.manual_seed(0)
    backbone = Transformer(architecture=architecture, positions=LENGTH).tiny()
    head = MaskedLMHead()
    network = head.build(backbone.config(tokenizer, LENGTH), None).eval().double()
    arrays = packed(tokenizer, TokenMask()).batch(0)
    batch = {name: torch.from_numpy(value) for name, value in arrays.items()}
    wanted = frozenset({Signal.MASKED_LOGITS})
    alone = []
    for row, place in pieces(arrays):
        masked = batch[Field.MASKED_POSITIONS] - row * LENGTH
        mine = masked[(masked >= place.start) & (masked < place.stop)] - place.start
        text = {Field.INPUT_IDS: batch[Field.INPUT_IDS][row : row + 1, place], Field.MASKED_POSITIONS: mine}
        alone.append(head.signals(network, text, wanted)[Signal.MASKED_LOGITS])
    attend_within_documents(network)
    together = head.signals(network, batch, wanted)[Signal.MASKED_LOGITS]
    torch.testing.assert_close(together, torch.cat(alone), rtol=1e-9, atol=1e-11)


def test_what_follows_is_predicted_within_a_document_only() -> None:
    tokenizer = ByteBPE(vocab_size=600).train(TEXTS)
    torch.manual_seed(0)
    backbone = Transformer(architecture="gpt2", positions=LENGTH).tiny()
    head, objective, wanted = CausalLMHead(), CausalLM(), frozenset({Signal.NEXT_LOGITS})
    network = head.build(backbone.config(tokenizer, LENGTH), None).eval().double()
    arrays = packed(tokenizer).batch(0)

    def loss_of(batch: dict[Field, torch.Tensor]) -> tuple[float, int]:
        step = TrainingStep(batch, head.signals(network, batch, wanted), network, lambda *_: {}, wanted)
        return float(objective.loss(step)["causal_lm"].detach()), objective.counts(batch, network)["causal_lm"]

    batch = {name: torch.from_numpy(value) for name, value in arrays.items()}
    alone = [loss_of({Field.INPUT_IDS: batch[Field.INPUT_IDS][row : row + 1, place]}) for row, place in pieces(arrays)]
    counted = sum(count for _, count in alone)
    attend_within_documents(network)
    together, count = loss_of(batch)
    assert count == counted
    assert together == pytest.approx(sum(loss * count for loss, count in alone) / counted, rel=1e-9)
