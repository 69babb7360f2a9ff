"""StructBERT's two objectives in float64, by the paper's words (Wang et al. 2019, §2.2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import BertForPreTraining, BertModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.parts.corruptions.segment_relations import RELATIONS, SegmentRelations
from pipelines.parts.corruptions.shuffled_trigrams import ShuffledTrigrams
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.heads.masked_lm_and_relations import RELATION_LOGITS, MaskedLMAndRelationsHead
from pipelines.parts.layouts.windows import Windows
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.masked_lm import MaskedLM
from pipelines.parts.objectives.segment_relations import SegmentRelationsObjective
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.small_recipe import GENERAL
from tests.reference.masked_text import GATHERED, build
from tests.small_corpus import documents
from tests.steps import library_of
from tests.streams import stream_of

BOTH = frozenset({Signal.MASKED_LOGITS, RELATION_LOGITS, Signal.HIDDEN_STATES})


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    """Sixteen pairs of segments of real text with masked and shuffled tokens; one row is no pair."""
    stream = stream_of(documents("logging", "json"), tokenizer)
    parts = (SegmentRelations(), TokenMask(), ShuffledTrigrams(rate=0.1))
    arrays = PlainBatches(stream, tokenizer, Windows(), parts, rows=16, length=40, steps=1, seed=3).batch(0)
    arrays[RELATIONS][5] = -100
    assert {0, 1, 2} <= set(arrays[RELATIONS].tolist())
    return {name: torch.from_numpy(value) for name, value in arrays.items()}


@pytest.fixture(scope="module")
def network(tokenizer: PreTrainedTokenizerFast) -> BertForPreTraining:
    network = build(MaskedLMAndRelationsHead(), "bert", tokenizer)
    assert isinstance(network, BertForPreTraining)
    return network


@torch.no_grad()
def test_the_losses_are_the_papers(batch: dict[Field, Tensor], network: BertForPreTraining) -> None:
    """−log softmax of the original token at masked and at shuffled positions alike, mean over both; and of the relation
    at V·tanh(W·h + b) + c of the first token, mean over the pairs."""
    signals = MaskedLMAndRelationsHead().signals(network, batch, BOTH)
    step = TrainingStep(batch, signals, network, lambda *_: {})
    ours = {**MaskedLM().loss(step), **SegmentRelationsObjective().loss(step)}

    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
    top = signals[Signal.HIDDEN_STATES][-1].double().numpy()
    pooled = np.tanh(top[:, 0] @ weights["bert.pooler.dense.weight"].T + weights["bert.pooler.dense.bias"])
    scores = pooled @ weights["cls.seq_relationship.weight"].T + weights["cls.seq_relationship.bias"]
    assert scores.shape == (16, 3)
    np.testing.assert_allclose(signals[RELATION_LOGITS].numpy(), scores, atol=GATHERED)
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    labels = batch[RELATIONS].numpy()
    pairs = np.flatnonzero(labels >= 0)
    assert float(ours["segment_relations"]) == pytest.approx(-logs[pairs, labels[pairs]].mean(), rel=1e-5)
    assert SegmentRelationsObjective().counts(batch, network) == {"segment_relations": len(pairs)}

    clean, seen = batch[Field.ORIGINAL_IDS].flatten(), batch[Field.INPUT_IDS].flatten()
    at = batch[Field.MASKED_POSITIONS]
    assert set(at.tolist()) >= set(torch.nonzero(clean != seen).flatten().tolist()), "all that changed is predicted"
    words = network.cls.predictions(signals[Signal.HIDDEN_STATES][-1]).flatten(0, 1).double().log_softmax(-1)
    expected = -words[at, clean[at]].mean()
    assert float(ours["masked_lm"]) == pytest.approx(float(expected), rel=1e-5)


@torch.no_grad()
def test_albert_ends_with_three_classes_too(batch: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast) -> None:
    network = build(MaskedLMAndRelationsHead(), "albert", tokenizer)
    assert MaskedLMAndRelationsHead().signals(network, batch, BOTH)[RELATION_LOGITS].shape == (16, 3)


def test_plain_transformers_opens_the_backbone(network: BertForPreTraining, tmp_path: Path) -> None:
    network.save_pretrained(tmp_path)
    opened = BertModel.from_pretrained(tmp_path)
    for name, value in opened.state_dict().items():
        assert torch.equal(value, network.bert.state_dict()[name])


def test_a_head_of_two_classes_is_refused_for_three_relations(tmp_path: Path) -> None:
    pairs = GENERAL.replace("head: masked_lm", "head: masked_lm_and_pairs")
    pairs = pairs.replace("objective: masked_lm", "objective: [masked_lm, segment_relations]")
    pairs = pairs.replace("corruption: {", "corruption: [segment_relations, {").replace("rate: 0.2}", "rate: 0.2}]")
    with pytest.raises(
        RecipeError, match="segment_relations needs relation_logits, which the head masked_lm_and_pairs"
    ):
        library_of(tmp_path, small=pairs).load("small")
