"""Attention patterns against transformers' BERT under the same explicit mask, and against what no token may learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from pipelines.networks.document_attention import attend_within_documents
from pipelines.parts.attention import AttentionPattern
from pipelines.parts.attention.bidirectional import Bidirectional
from pipelines.parts.attention.left_to_right import LeftToRight
from pipelines.parts.attention.sequence_to_sequence import SequenceToSequenceAttention
from pipelines.parts.attention.sliding_window import SlidingWindow
from pipelines.parts.attention.within_documents import WithinDocuments
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.task_families.encoding import FieldArrays
from pipelines.vocabulary import Field, Signal

ROWS, LENGTH = 3, 16
LOGITS = frozenset({Signal.MASKED_LOGITS})
PATTERNS: dict[str, AttentionPattern] = {
    "left_to_right": LeftToRight(),
    "right_to_left": LeftToRight(reversed=True),
    "sequence_to_sequence": SequenceToSequenceAttention(),
    "documents": WithinDocuments(),
    "sliding_window": SlidingWindow(window=4, first=1),
}


def rows(size: int) -> FieldArrays:
    """Rows of random tokens, every one of which is predicted; the second ends in padding."""
    random = np.random.default_rng(0)
    ids = random.integers(5, size, (ROWS, LENGTH))
    mask = np.ones_like(ids)
    mask[1, 11:] = 0
    types = (np.arange(LENGTH) >= np.asarray([[5], [7], [9]])).astype(np.int64) * mask
    return {
        Field.INPUT_IDS: ids,
        Field.ATTENTION_MASK: mask,
        Field.TOKEN_TYPE_IDS: types,
        Field.DOCUMENTS: np.cumsum(random.random((ROWS, LENGTH)) < 0.3, axis=1),
        Field.MASKED_POSITIONS: np.arange(ROWS * LENGTH),
    }


def expected_visibility(name: str, batch: FieldArrays) -> NDArray[np.bool_]:
    """UniLM's masks as §2.3 states them, pair by pair."""
    visible = np.zeros((ROWS, LENGTH, LENGTH), dtype=np.bool_)
    types, documents, mask = (batch[field] for field in (Field.TOKEN_TYPE_IDS, Field.DOCUMENTS, Field.ATTENTION_MASK))
    for row in range(ROWS):
        for i in range(LENGTH):
            for j in range(LENGTH):
                visible[row, i, j] = {
                    "left_to_right": j <= i,
                    "right_to_left": j >= i,
                    # target tokens see the source and the target up to themselves; source tokens see the source
                    "sequence_to_sequence": types[row, j] == 0 or (types[row, i] == 1 and j <= i),
                    "documents": documents[row, i] == documents[row, j],
                    "sliding_window": abs(i - j) <= 2 or i == 0 or j == 0,
                }[name] and mask[row, j] == 1
    return visible


def network_of(tokenizer: PreTrainedTokenizerFast, architecture: str = "bert") -> PreTrainedModel:
    torch.manual_seed(0)
    config = Transformer(architecture=architecture, positions=64).tiny().config(tokenizer, LENGTH)
    config._attn_implementation = "eager"
    network = MaskedLMHead().build(config, None).eval()
    for parameter in network.parameters():  # initial weights are so small that attention hardly matters
        parameter.data += 0.2 * torch.randn_like(parameter)
    return network


def answered(network: PreTrainedModel, batch: FieldArrays) -> Tensor:
    fields: Any = {name: torch.from_numpy(value) for name, value in batch.items()}
    logits: Tensor = MaskedLMHead().signals(network, fields, LOGITS)[Signal.MASKED_LOGITS]
    return logits.view(*batch[Field.INPUT_IDS].shape, -1)


@pytest.mark.parametrize("name", PATTERNS)
@torch.no_grad()
def test_a_pattern_is_the_explicit_mask_of_transformers(name: str, tokenizer: PreTrainedTokenizerFast) -> None:
    network, batch = network_of(tokenizer), rows(len(tokenizer))
    completed = PATTERNS[name].apply(batch)
    real = batch[Field.ATTENTION_MASK] == 1
    expected = expected_visibility(name, batch)
    assert np.array_equal(completed[Field.VISIBLE][real], expected[real])
    explicit = torch.zeros(ROWS, 1, LENGTH, LENGTH).masked_fill(~torch.from_numpy(expected)[:, None], -1e9)
    ids, types = (torch.from_numpy(batch[field]) for field in (Field.INPUT_IDS, Field.TOKEN_TYPE_IDS))
    plain = network(input_ids=ids, token_type_ids=types, attention_mask=explicit).logits
    ours = answered(network, completed)
    torch.testing.assert_close(ours[torch.from_numpy(real)], plain[torch.from_numpy(real)], rtol=1e-5, atol=1e-5)
    unrestricted = answered(network, batch)
    assert (ours - unrestricted).abs().max() > 0.1, "without the pattern the answers are others: the test can fail"


@pytest.mark.parametrize("name", PATTERNS)
@torch.no_grad()
def test_a_token_that_is_not_visible_changes_nothing_exactly(name: str, tokenizer: PreTrainedTokenizerFast) -> None:
    network, batch = network_of(tokenizer), rows(len(tokenizer))
    before = answered(network, PATTERNS[name].apply(batch))
    # what a token can learn of another in two layers
    step = torch.from_numpy(PATTERNS[name].apply(batch)[Field.VISIBLE]).double()
    learns = (step @ step) > 0
    for changed in range(LENGTH):
        other = batch[Field.INPUT_IDS].copy()
        other[:, changed] = (other[:, changed] - 5 + 7) % (len(tokenizer) - 5) + 5
        after = answered(network, PATTERNS[name].apply({**batch, Field.INPUT_IDS: other}))
        same = (before == after).all(-1)
        assert bool(same[~learns[:, :, changed]].all())
        assert not bool(same[learns[:, :, changed]].any())


@pytest.mark.parametrize("architecture", ["roberta", "electra"])
@torch.no_grad()
def test_other_bodies_take_a_pattern_alike(architecture: str, tokenizer: PreTrainedTokenizerFast) -> None:
    network, batch = network_of(tokenizer, architecture), rows(len(tokenizer))
    del batch[Field.TOKEN_TYPE_IDS]
    before = answered(network, LeftToRight().apply(batch))
    other = batch[Field.INPUT_IDS].copy()
    other[:, -1] = 5
    after = answered(network, LeftToRight().apply({**batch, Field.INPUT_IDS: other}))
    assert torch.equal(before[:, :-1], after[:, :-1]) and not torch.equal(before[0, -1], after[0, -1])


@torch.no_grad()
def test_fused_attention_reads_the_pattern_too(tokenizer: PreTrainedTokenizerFast) -> None:
    network, batch = network_of(tokenizer), SequenceToSequenceAttention().apply(rows(len(tokenizer)))
    eager = answered(network, batch)
    network.set_attn_implementation("sdpa")
    torch.testing.assert_close(answered(network, batch), eager, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_packed_rows_with_a_pattern_are_their_documents_one_by_one(tokenizer: PreTrainedTokenizerFast) -> None:
    network = network_of(tokenizer)
    ids = np.random.default_rng(1).integers(5, len(tokenizer), (1, LENGTH))
    starts = np.zeros_like(ids)
    starts[0, [0, 6]] = 1
    positions = np.concatenate([np.arange(6), np.arange(LENGTH - 6)])[None]
    parts = [
        answered(network, LeftToRight().apply({Field.INPUT_IDS: part, Field.MASKED_POSITIONS: np.arange(part.size)}))
        for part in (ids[:, :6], ids[:, 6:])
    ]
    attend_within_documents(network)
    packed = {
        Field.INPUT_IDS: ids,
        Field.POSITION_IDS: positions,
        Field.DOCUMENT_STARTS: starts,
        Field.MASKED_POSITIONS: np.arange(LENGTH),
    }
    together = answered(network, LeftToRight().apply(packed))
    torch.testing.assert_close(together, torch.cat(parts, dim=1), rtol=1e-5, atol=1e-5)


def test_no_restriction_adds_nothing(tokenizer: PreTrainedTokenizerFast) -> None:
    batch = rows(len(tokenizer))
    assert Bidirectional().apply(batch) is batch
