"""Batches: a pure function of text, seed and step; nothing is left out, nothing comes twice."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset
from transformers import PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Corruption
from pipelines.parts.corruptions.adjacent_halves import AdjacentHalves
from pipelines.parts.corruptions.context_windows import ContextWindows
from pipelines.parts.corruptions.negative_samples import NegativeSamples
from pipelines.parts.corruptions.permutation import Permutation
from pipelines.parts.corruptions.span_mask import SpanMask
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.parts.layouts.windows import Windows
from pipelines.task_families import Task
from pipelines.task_families.encoding import MULTIPLE, EncodedExamples
from pipelines.task_families.text_classification import TextClassification
from pipelines.training.batches.examples import BUCKET, ExampleBatches, SortedBatches, tensors
from pipelines.training.batches.plain_text import PlainBatches, document_ids
from pipelines.vocabulary import PER_MASKED_POSITION, PER_WINDOW, ROW_INDICES, Field
from tests.small_corpus import documents
from tests.streams import stream_of

TEXTS = documents("argparse", "logging")


@pytest.fixture(autouse=True)
def used_before(tokenizer: PreTrainedTokenizerFast) -> None:
    """A tokenizer that was last asked to cut and to pad, as one that comes with a checkpoint may be."""
    tokenizer(TEXTS[:2], truncation=True, max_length=8, padding="max_length")


def plain(
    tokenizer: PreTrainedTokenizerFast,
    corruptions: tuple[Corruption, ...] = (),
    steps: int = 40,
    seed: int = 0,
    corruption_shards: int = 1,
) -> PlainBatches:
    stream = stream_of(TEXTS, tokenizer)
    return PlainBatches(
        stream,
        tokenizer,
        Windows(),
        corruptions,
        rows=8,
        length=32,
        steps=steps,
        seed=seed,
        corruption_shards=corruption_shards,
    )


@pytest.mark.parametrize("corruptions", [(), (AdjacentHalves(), TokenMask(rate=0.2))], ids=["plain", "corrupted"])
def test_the_batch_of_a_step_is_found_without_the_ones_before(
    corruptions: tuple[Corruption, ...], tokenizer: PreTrainedTokenizerFast
) -> None:
    batches = plain(tokenizer, corruptions)
    walked = list(batches)
    assert len(walked) == len(batches) == 40
    fresh = plain(tokenizer, corruptions)
    for step in (39, 0, 17, 3, 38):
        found = fresh.batch(step)
        assert walked[step].keys() == {str(name) for name in found}
        assert all(np.array_equal(walked[step][str(name)].numpy(), value) for name, value in found.items())
    resumed = plain(tokenizer, corruptions)
    resumed.start = 25
    assert all(torch.equal(a[key], b[key]) for a, b in zip(resumed, walked[25:], strict=True) for key in a)


def test_rows_are_wrapped_and_epochs_differ(tokenizer: PreTrainedTokenizerFast) -> None:
    batches = plain(tokenizer, steps=10_000)
    first, again = batches.batch(0)[Field.INPUT_IDS], batches.batch(batches.steps_per_epoch)[Field.INPUT_IDS]
    assert first.shape == (8, 32) and not np.array_equal(first, again)
    assert (first[:, 0] == tokenizer.cls_token_id).all() and (first[:, -1] == tokenizer.sep_token_id).all()
    other = plain(tokenizer, seed=1).batch(0)[Field.INPUT_IDS]
    assert not np.array_equal(first, other)


def test_an_epoch_visits_nearly_all_tokens_and_two_visit_more(tokenizer: PreTrainedTokenizerFast) -> None:
    batches = plain(tokenizer, steps=10_000)
    # every token named by its place: the batches then say which places they hold
    places = replace(batches.stream, tokens=np.arange(len(batches.stream.tokens), dtype=np.uint32))
    named = PlainBatches(places, tokenizer, Windows(), (), rows=8, length=32, steps=10_000, seed=0)
    seen: set[int] = set()
    shares = []
    for epoch in range(3):
        for step in range(epoch * named.steps_per_epoch, (epoch + 1) * named.steps_per_epoch):
            seen |= set(named.batch(step)[Field.INPUT_IDS][:, 1:-1].ravel().tolist())
        shares.append(len(seen) / len(batches.stream.tokens))
    # windows snap to the beginning of a document, so neighbours may overlap and leave a gap
    assert shares[0] > 0.75 and shares[2] > 0.93 and shares == sorted(shares)


def test_a_corpus_shorter_than_a_batch_is_a_valid_corpus(tokenizer: PreTrainedTokenizerFast) -> None:
    stream = stream_of(["A single short text."], tokenizer)
    batches = PlainBatches(stream, tokenizer, Windows(), (TokenMask(),), rows=16, length=64, steps=3, seed=0)
    assert [batch["input_ids"].shape for batch in batches] == [(16, 64)] * 3


def test_a_tokenizer_without_what_a_corruption_writes_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    stream = stream_of(TEXTS, tokenizer)
    foreign = deepcopy(tokenizer)
    foreign.mask_token = None
    with pytest.raises(
        RecipeError, match="corruption token_mask needs a tokenizer with mask, and the checkpoint's has none"
    ):
        PlainBatches(stream, foreign, Windows(), (TokenMask(),), rows=8, length=32, steps=3, seed=0)


STACKS: dict[str, tuple[Corruption, ...]] = {
    "whole": (),
    "halves": (AdjacentHalves(), TokenMask()),
    "spans": (SpanMask(),),
    "permuted": (Permutation(),),
    "windows": (ContextWindows(), NegativeSamples()),
}


@pytest.mark.parametrize("name", STACKS)
def test_the_pieces_of_a_batch_are_the_batch_into_however_many_it_is_cut(
    name: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    batches = plain(tokenizer, STACKS[name], steps=5, corruption_shards=4)
    assert batches.corruption_shards == 4
    for step in (0, 3):
        whole = batches.batch(step)
        length = whole[Field.INPUT_IDS].shape[1]
        for of in (2, 4):
            parts = [batches.batch(step, number, of) for number in range(of)]
            # row r of a piece is row `places[piece][r]` of the batch: first pieces of all windows come first
            rows = np.arange(len(whole[Field.INPUT_IDS])).reshape(batches.segments, of, -1)
            places = [rows[:, number].ravel() for number in range(of)]
            for field in whole.keys() - PER_MASKED_POSITION - PER_WINDOW - ROW_INDICES:
                for part, place in zip(parts, places, strict=True):
                    assert np.array_equal(part[field], whole[field][place]), (of, field)
            for field in whole.keys() & PER_WINDOW:
                assert np.array_equal(np.concatenate([part[field] for part in parts]), whole[field])
            if Field.PARTNER in whole:
                for part, place in zip(parts, places, strict=True):
                    named = np.where(part[Field.PARTNER] >= 0, place[part[Field.PARTNER]], -1)
                    assert np.array_equal(named, whole[Field.PARTNER][place])
            if Field.MASKED_POSITIONS in whole:
                assert np.all(np.diff(whole[Field.MASKED_POSITIONS]) > 0)
                found = {}
                for part, place in zip(parts, places, strict=True):
                    at = part[Field.MASKED_POSITIONS]
                    labels = part[Field.MASKED_LABELS]
                    edges = part.get(Field.SPAN_EDGES, np.zeros((len(at), 2), dtype=np.int64))
                    moved = place[edges // length] * length + edges % length
                    for position, label, edge in zip(
                        place[at // length] * length + at % length, labels, moved, strict=True
                    ):
                        found[int(position)] = (int(label), *map(int, edge))
                assert sorted(found) == whole[Field.MASKED_POSITIONS].tolist()
                assert [found[key][0] for key in sorted(found)] == whole[Field.MASKED_LABELS].tolist()
                if Field.SPAN_EDGES in whole:
                    assert [list(found[key][1:]) for key in sorted(found)] == whole[Field.SPAN_EDGES].tolist()


def test_grains_are_corrupted_each_by_itself(tokenizer: PreTrainedTokenizerFast) -> None:
    batches = plain(tokenizer, (TokenMask(),), steps=3, corruption_shards=4)
    positions = [batches.batch(1, number, 4)[Field.MASKED_POSITIONS] for number in range(4)]
    assert not all(np.array_equal(positions[0], other) for other in positions[1:])
    assert plain(tokenizer, (), steps=3, corruption_shards=6).corruption_shards == 2, (
        "a shard is a whole number of windows"
    )


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_workers_read_the_same_text_in_the_same_order(workers: int, tokenizer: PreTrainedTokenizerFast) -> None:
    alone = plain(tokenizer, (TokenMask(),), steps=12)
    loader = DataLoader(
        cast("Dataset[Any]", alone), batch_size=None, sampler=range(3, 12), num_workers=workers, shuffle=False
    )
    for step, batch in zip(range(3, 12), loader, strict=True):
        assert all(torch.equal(value, batch[name]) for name, value in alone[step].items())


@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=40), width=st.integers(1, 25), seed=st.integers(0, 99))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_each_token_is_of_its_document(lengths: list[int], width: int, seed: int) -> None:
    total = sum(lengths)
    width = min(width, total)
    starts = np.cumsum([0, *lengths[:-1]])
    owner = np.repeat(np.arange(len(lengths)), lengths)
    begins = np.random.default_rng(seed).integers(0, total - width + 1, size=5)
    expected = owner[begins[:, None] + np.arange(width)]
    assert np.array_equal(document_ids(starts, begins, width), expected)


def test_a_short_corpus_is_read_over_and_over(tokenizer: PreTrainedTokenizerFast) -> None:
    stream = stream_of(["A single short text.", "Another one."], tokenizer)
    batches = PlainBatches(stream, tokenizer, Windows(framed=False), (), rows=4, length=32, steps=3, seed=0)
    batch = batches.batch(1)
    over = np.tile(stream.tokens, 60)
    texts = {over[at : at + 32].tobytes() for at in range(len(stream.tokens))}
    assert all(row.astype(over.dtype).tobytes() in texts for row in batch[Field.INPUT_IDS])
    begins = batch[Field.INPUT_IDS][:, :-1] == tokenizer.sep_token_id
    assert np.array_equal(np.diff(batch[Field.DOCUMENTS], axis=1) == 1, begins), "a copy of a document is another one"


def numbered(tokenizer: PreTrainedTokenizerFast) -> EncodedExamples:
    """The texts, each labelled with its own number."""
    rows = [{"text": text, "label": f"{number:04}"} for number, text in enumerate(TEXTS)]
    task = Task(TextClassification(), tuple(row["label"] for row in rows))
    return SequenceClassificationHead().encode(rows, task, tokenizer, 48)


def test_texts_come_once_an_epoch_in_batches_of_like_length(tokenizer: PreTrainedTokenizerFast) -> None:
    size = 4
    texts = numbered(tokenizer)
    per_epoch = -(-len(TEXTS) // size)
    batches = ExampleBatches(texts, size=size, steps=3 * per_epoch, seed=0)
    walked = list(batches)
    for epoch in range(3):
        part = walked[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert sorted(int(label) for batch in part for label in batch["labels"]) == list(range(len(TEXTS)))
    assert [b["labels"].tolist() for b in walked[:per_epoch]] != [
        b["labels"].tolist() for b in walked[per_epoch : 2 * per_epoch]
    ]
    for batch in walked:
        ids, mask = batch["input_ids"], batch["attention_mask"]
        longest = int(mask.sum(1).max())
        assert ids.shape[1] % MULTIPLE == 0 and ids.shape[1] - longest < MULTIPLE and longest <= 48
        assert bool((ids[mask == 0] == tokenizer.pad_token_id).all())
        for row, label in enumerate(batch["labels"]):
            expected = tokenizer.encode(TEXTS[int(label)], truncation=True, max_length=48)
            assert ids[row, : int(mask[row].sum())].tolist() == expected
    bucketed = sum(batch["input_ids"].numel() for batch in walked[:per_epoch])
    order = np.random.default_rng(0).permutation(len(TEXTS))
    unsorted = sum(tensors(texts, order[at : at + size])["input_ids"].numel() for at in range(0, len(order), size))
    assert bucketed < unsorted and BUCKET > 1
    again = ExampleBatches(texts, size=size, steps=3 * per_epoch, seed=0)
    again.start = 2 * per_epoch - 1
    assert all(
        torch.equal(a[key], b[key]) for a, b in zip(again, walked[2 * per_epoch - 1 :], strict=True) for key in a
    )


def test_validation_sees_every_text_once_and_training_may_cut_again(tokenizer: PreTrainedTokenizerFast) -> None:
    texts = numbered(tokenizer)
    in_order = SortedBatches(texts, 7)
    found = [in_order[index] for index in range(len(in_order))]
    assert sorted(int(label) for batch in found for label in batch["labels"]) == list(range(len(TEXTS)))
    widths = [batch["input_ids"].shape[1] for batch in found]
    assert widths == sorted(widths)
    assert len(tokenizer.encode(TEXTS[0] * 9)) > 48, "cutting for one stage must not change the tokenizer"
