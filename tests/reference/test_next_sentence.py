"""BERT's pre-training: logits and loss against Hugging Face's BertForPreTraining, and in float64 by the paper's words
(Devlin et al. 2018, §3.1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import BertForPreTraining, PreTrainedTokenizerFast

from pipelines.parts.corruptions import Arrays
from pipelines.parts.corruptions.next_sentence import NextSentence
from pipelines.parts.corruptions.token_mask import TokenMask
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

LENGTH = 40
PAIRS = frozenset({Signal.MASKED_LOGITS, Signal.SEGMENT_LOGITS, Signal.HIDDEN_STATES})


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    """Sixteen pairs of segments of real text with masked tokens; the label of one row is left out."""
    stream = stream_of(documents("logging", "json"), tokenizer)
    parts = (NextSentence(), TokenMask())
    arrays: Arrays = PlainBatches(stream, tokenizer, Windows(), parts, rows=16, length=LENGTH, steps=1, seed=3).batch(0)
    arrays[Field.SEGMENT_LABELS][5] = -100
    assert {0, 1} <= set(arrays[Field.SEGMENT_LABELS].tolist())
    return {name: torch.from_numpy(value) for name, value in arrays.items()}


@pytest.fixture(scope="module")
def network(tokenizer: PreTrainedTokenizerFast) -> BertForPreTraining:
    network = build(MaskedLMAndPairsHead(), "bert", tokenizer)
    assert isinstance(network, BertForPreTraining)
    return network


def losses(batch: dict[Field, Tensor], network: BertForPreTraining) -> dict[str, Tensor]:
    signals = MaskedLMAndPairsHead().signals(network, batch, PAIRS)
    step = TrainingStep(batch, signals, network, lambda *_: {})
    return {**MaskedLM().loss(step), **NextSentenceObjective().loss(step)}


@torch.no_grad()
def test_logits_and_total_loss_are_hugging_faces(batch: dict[Field, Tensor], network: BertForPreTraining) -> None:
    labels = torch.full_like(batch[Field.INPUT_IDS], -100)
    labels.view(-1)[batch[Field.MASKED_POSITIONS]] = batch[Field.MASKED_LABELS]
    theirs = network(
        input_ids=batch[Field.INPUT_IDS],
        token_type_ids=batch[Field.TOKEN_TYPE_IDS],
        labels=labels,
        next_sentence_label=batch[Field.SEGMENT_LABELS],
    )
    signals = MaskedLMAndPairsHead().signals(network, batch, PAIRS)
    torch.testing.assert_close(signals[Signal.SEGMENT_LOGITS], theirs.seq_relationship_logits, atol=GATHERED, rtol=0)
    expected = theirs.prediction_logits.flatten(0, 1)[batch[Field.MASKED_POSITIONS]]
    torch.testing.assert_close(signals[Signal.MASKED_LOGITS], expected, atol=GATHERED, rtol=0)
    ours = losses(batch, network)
    assert float(sum(ours.values())) == pytest.approx(float(theirs.loss), rel=EXACT)


@torch.no_grad()
def test_the_pairs_loss_in_float64(batch: dict[Field, Tensor], network: BertForPreTraining) -> None:
    """C = tanh(W·h + b) of the first token; the mean of −log softmax(V·C + c) of the label over the pairs."""
    weights = {name: value.double().numpy() for name, value in network.state_dict().items()}
    first = MaskedLMAndPairsHead().signals(network, batch, PAIRS)[Signal.HIDDEN_STATES][-1][:, 0].double().numpy()
    pooled = np.tanh(first @ weights["bert.pooler.dense.weight"].T + weights["bert.pooler.dense.bias"])
    scores = pooled @ weights["cls.seq_relationship.weight"].T + weights["cls.seq_relationship.bias"]
    logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
    labels = batch[Field.SEGMENT_LABELS].numpy()
    pairs = np.flatnonzero(labels >= 0)
    assert len(pairs) == 15
    expected = -logs[pairs, labels[pairs]].mean()
    assert float(losses(batch, network)["next_sentence"]) == pytest.approx(expected, rel=1e-5)
    assert NextSentenceObjective().counts(batch, network) == {"next_sentence": 15}


def test_a_batch_without_pairs_teaches_nothing(batch: dict[Field, Tensor], network: BertForPreTraining) -> None:
    none = {**batch, Field.SEGMENT_LABELS: torch.full((16,), -100)}
    loss = losses(none, network)["next_sentence"]
    loss.backward()
    assert float(loss.detach()) == 0 and NextSentenceObjective().counts(none, network) == {"next_sentence": 0}
    assert not network.get_submodule("cls.seq_relationship").weight.grad.any()
    network.zero_grad()


@torch.no_grad()
def test_the_saved_folder_is_hugging_faces(
    batch: dict[Field, Tensor], network: BertForPreTraining, tmp_path: Path
) -> None:
    network.save_pretrained(tmp_path)
    opened, unmatched = BertForPreTraining.from_pretrained(
        tmp_path, attn_implementation="eager", output_loading_info=True
    )
    assert not any(unmatched.values())
    assert losses(batch, opened.eval()) == losses(batch, network)
