"""ALBERT's pre-training against Hugging Face's AlbertForPreTraining, and its sharing of weights (Lan et al. 2019)."""

from __future__ import annotations

import pytest
import torch
from transformers import AlbertForPreTraining, PreTrainedTokenizerFast

from pipelines.parts.corruptions.ngram_mask import NgramMask
from pipelines.parts.corruptions.segment_order import SegmentOrder
from pipelines.parts.heads.masked_lm_and_pairs import MaskedLMAndPairsHead
from pipelines.parts.layouts.windows import Windows
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.masked_lm import MaskedLM
from pipelines.parts.objectives.next_sentence import NextSentenceObjective
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.vocabulary import Field, Signal
from tests.reference.masked_text import EXACT, GATHERED, build
from tests.small_corpus import documents
from tests.streams import stream_of

PAIRS = frozenset({Signal.MASKED_LOGITS, Signal.SEGMENT_LOGITS})


@torch.no_grad()
def test_logits_and_total_loss_are_hugging_faces(tokenizer: PreTrainedTokenizerFast) -> None:
    stream = stream_of(documents("logging", "json"), tokenizer)
    parts = (SegmentOrder(), NgramMask())
    arrays = PlainBatches(stream, tokenizer, Windows(), parts, rows=16, length=40, steps=1, seed=3).batch(0)
    batch = {name: torch.from_numpy(value) for name, value in arrays.items()}
    assert {0, 1} <= set(batch[Field.SEGMENT_LABELS].tolist())
    network = build(MaskedLMAndPairsHead(), "albert", tokenizer)
    assert isinstance(network, AlbertForPreTraining)
    labels = torch.full_like(batch[Field.INPUT_IDS], -100)
    labels.view(-1)[batch[Field.MASKED_POSITIONS]] = batch[Field.MASKED_LABELS]
    theirs = network(
        input_ids=batch[Field.INPUT_IDS],
        token_type_ids=batch[Field.TOKEN_TYPE_IDS],
        labels=labels,
        sentence_order_label=batch[Field.SEGMENT_LABELS],
    )
    signals = MaskedLMAndPairsHead().signals(network, batch, PAIRS)
    torch.testing.assert_close(signals[Signal.SEGMENT_LOGITS], theirs.sop_logits, atol=GATHERED, rtol=0)
    step = TrainingStep(batch, signals, network, lambda *_: {})
    ours = {**MaskedLM().loss(step), **NextSentenceObjective().loss(step)}
    assert float(sum(ours.values())) == pytest.approx(float(theirs.loss), rel=EXACT)


def test_depth_costs_no_parameters_and_narrow_embeddings_few(tokenizer: PreTrainedTokenizerFast) -> None:
    """§3.1: V · E + E · H instead of V · H, and the parameters of one layer at any depth."""
    from transformers import AlbertConfig, AlbertModel

    def parameters(**dims: int) -> int:
        config = AlbertConfig(
            vocab_size=640, hidden_size=32, intermediate_size=64, num_attention_heads=2, max_position_embeddings=16,
            **dims,
        )  # fmt: skip
        with torch.device("meta"):
            return sum(value.numel() for value in AlbertModel(config).parameters())

    assert parameters(num_hidden_layers=12, embedding_size=8) == parameters(num_hidden_layers=1, embedding_size=8)
    rows = 640 + 16 + 2  # tokens, positions, types
    narrower = rows * (16 - 8) + 32 * (16 - 8) + 2 * (16 - 8)  # tables, projection, layer normalisation
    assert parameters(num_hidden_layers=2, embedding_size=16) - parameters(num_hidden_layers=2, embedding_size=8) == (
        narrower
    )
