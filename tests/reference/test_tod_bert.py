"""Dialogues: who speaks, where they are cut, and the choice of a response against its equation in float64."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import cast

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.parts.annotations.speakers import Speakers
from pipelines.parts.corruptions.dialogue_response import SPEAKERS, DialogueResponse
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.layouts import Layout
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.response_selection import ResponseSelection
from pipelines.parts.tokenizers.dialogue_wordpiece import DialogueWordPiece
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.task_families.dialogues import ROLES, dialogue
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.annotations.tokenized_texts import by_word, values_of, whole
from tests.pipelines.parts.corruptions.rows import token_ids
from tests.small_corpus import documents
from tests.streams import stream_of

USER, SYSTEM = ROLES
CLS, END = 2, 3


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    return DialogueWordPiece(vocab_size=600).train([*documents("logging"), f"{USER} usr {SYSTEM}"])


def test_marks_are_single_tokens_that_are_never_masked_and_count_in_the_vocabulary() -> None:
    made = tokenizer()
    assert made.tokenize(f"{USER} log {SYSTEM}it")[0] == USER and SYSTEM in made.tokenize(f"log {SYSTEM}it")
    assert len(made) <= 600 and set(made.convert_tokens_to_ids([*ROLES])) <= set(made.all_special_ids)
    assert USER not in made.tokenize("USR usr [usr]"), "only as it is written"


def test_each_token_has_its_speaker_and_a_cut_mark_is_refused_with_its_row() -> None:
    text = f"log {USER} the log {SYSTEM} it is {USER} so"
    read, tokens = whole(text, tokenizer())
    speakers = values_of(Speakers(), read)
    marks = [at for at, token in enumerate(tokens) if token in ROLES]
    expected = np.zeros(len(tokens), dtype=np.int64)
    expected[marks[0] : marks[1]], expected[marks[1] : marks[2]], expected[marks[2] :] = 1, 2, 1
    assert speakers.tolist() == expected.tolist()
    # of a row that has no room for its beginning
    cut = replace(read, spans=read.spans[marks[0] + 1 :])
    assert values_of(Speakers(), cut).tolist() == speakers[marks[0] + 1 :].tolist()
    words, same_tokens = by_word(text.split(), tokenizer())
    assert same_tokens == tokens and values_of(Speakers(), words).tolist() == speakers.tolist()
    plain, _ = whole(text, WordPiece(vocab_size=300).train(documents("logging")))
    with pytest.raises(DataError, match=r"pages.parquet, row 7: the mark '\[USR\]' of a speaker is no token"):
        values_of(Speakers(), plain)


def test_a_dialogue_is_cut_before_a_response_by_hand() -> None:
    # one passage of two rows of eight: [CLS] … [SEP]; a dialogue of four turns ends, another begins
    first, second = [CLS, 10, 11, 20, 21, 12, 13, END], [CLS, 22, 23, 24, 14, 15, 16, END]
    speakers = np.asarray([[0, 1, 1, 2, 2, 1, 1, 0], [0, 2, 2, 2, 1, 1, 1, 0]])
    documents_of = np.asarray([[0] * 8, [0, 0, 0, 0, 1, 1, 1, 1]])
    ids = np.asarray([first, second])
    batch = {Field.INPUT_IDS: ids, Field.ORIGINAL_IDS: ids, Field.DOCUMENTS: documents_of, SPEAKERS: speakers}
    seen = set()
    for seed in range(20):
        made = DialogueResponse().apply(batch, token_ids(), np.random.default_rng(seed))
        context, response = ([one for one in row if one] for row in made[Field.INPUT_IDS].tolist())
        seen.add((tuple(context), tuple(response)))
        assert made[Field.PARTNER].tolist() == [1, 0]
        assert made[Field.ATTENTION_MASK].sum(1).tolist() == [len(context), len(response)]
        assert (made[SPEAKERS][1][1 : len(response) - 1] == 2).all() and made[SPEAKERS][1][0] == 0
    long = (CLS, 10, 11, 20, 21, 12, 13, END)
    assert seen == {
        ((CLS, 10, 11, END), (CLS, 20, 21, END)),
        (long, (CLS, 22, 23, 24, END)),
    }
    silent = batch | {SPEAKERS: np.minimum(speakers, 1)}
    kept = DialogueResponse().apply(silent, token_ids(), np.random.default_rng(0))
    assert kept[Field.PARTNER].tolist() == [-1, -1] and np.array_equal(kept[Field.INPUT_IDS], ids)


def test_a_long_context_keeps_its_end_and_a_long_response_its_beginning() -> None:
    ids = np.asarray([[CLS, 5, 6, 7, 8, END], [CLS, 9, 20, 21, 22, END]])
    speakers = np.asarray([[0, 1, 1, 1, 1, 0], [0, 1, 2, 2, 2, 0]])
    batch = {Field.INPUT_IDS: ids, Field.ORIGINAL_IDS: ids, Field.DOCUMENTS: np.zeros_like(ids), SPEAKERS: speakers}
    made = DialogueResponse().apply(batch, token_ids(), np.random.default_rng(0))
    assert made[Field.INPUT_IDS].tolist() == [[CLS, 6, 7, 8, 9, END], [CLS, 20, 21, 22, END, 0]]


def loss_of(states: torch.Tensor, partner: torch.Tensor) -> float:
    batch, signals = {Field.PARTNER: partner}, {Signal.HIDDEN_STATES: (states,)}
    step = TrainingStep(batch, signals, cast("PreTrainedModel", torch.nn.Identity()), lambda *_: {})
    return ResponseSelection().loss(step)["response_selection"].item()


def test_the_loss_is_the_equation_over_the_responses_of_the_batch() -> None:
    torch.manual_seed(0)
    states = torch.randn(8, 5, 6)
    # the second passage has no response
    partner = torch.tensor([4, -1, 6, 7, 0, -1, 2, 3])
    loss = loss_of(states, partner)
    vectors = states[:, 0].double().numpy()
    contexts, responses = vectors[[0, 2, 3]], vectors[[4, 6, 7]]
    scores = contexts @ responses.T
    likelihoods = [scores[at, at] - np.log(np.exp(scores[at]).sum()) for at in range(3)]
    assert loss == pytest.approx(-np.mean(likelihoods), rel=1e-5)
    assert loss_of(states[:2], torch.full((2,), -1)) == 0


def test_a_batch_of_dialogues_goes_through_network_and_both_losses() -> None:
    from transformers import BertConfig

    from pipelines.parts.objectives.masked_lm import MaskedLM

    texts = [dialogue([(USER, one[:60]), (SYSTEM, one[60:120]), (USER, one[120:160]), (SYSTEM, one[160:220])])
             for one in documents("logging", "json") if len(one) > 220]  # fmt: skip
    stream = stream_of(texts, tokenizer(), None, [Speakers()])
    parts = [DialogueResponse(), TokenMask(rate=0.15)]
    made = PlainBatches(
        stream, tokenizer(), Layout.model_validate("windows"), parts, rows=16, length=48, steps=1, seed=0
    )
    batch = {Field(name): value for name, value in made[0].items()}
    assert (batch[Field.PARTNER] >= 0).float().mean() > 0.5
    config = BertConfig(
        vocab_size=len(tokenizer()), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    torch.manual_seed(0)
    head = MaskedLMHead()
    network = head.build(config, None)
    objectives = (MaskedLM(), ResponseSelection())
    requested = frozenset[Signal]().union(*(one.required_signals for one in objectives))
    signals = head.signals(network, batch, requested)
    step = TrainingStep(batch, signals, network, lambda *_: {})
    losses = [value for one in objectives for value in one.loss(step).values()]
    torch.stack(losses).sum().backward()
    assert all(bool(one.isfinite()) and one > 0 for one in losses)
    assert network.base_model.embeddings.word_embeddings.weight.grad.abs().sum() > 0
