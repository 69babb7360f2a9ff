"""What every head promises, on every kind of body that it may be put upon and for every kind of task that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch

from pipelines.components import discover
from pipelines.errors import RecipeError
from pipelines.networks import register
from pipelines.parts.backbones import Backbone
from pipelines.parts.heads import Head
from pipelines.parts.tokenizers import Tokenizer
from pipelines.recipe.schema import Stage
from pipelines.task_families import Row, Task, TaskFamily
from pipelines.task_families.encoding import EncodedExamples
from pipelines.training.assembly.assemble import backbone_prefix
from pipelines.training.batches.plain_text import PlainBatches
from pipelines.training.batches.token_stream import TokenStream
from pipelines.vocabulary import Field, Signal
from tests.contracts.families import build, members
from tests.contracts.trials import stages, tables, where_used
from tests.small_corpus import documents
from tests.streams import stream_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

LENGTH, EXAMPLES = 96, 6
discover("pipelines.parts.backbones")
BODIES = {
    body.label: body for member in Backbone.members.values() for body in cast("type[Backbone]", member).variants()
}
HEADS = {name: cast("Head", build(member)) for name, member in members("heads").items()}
CONTINUED, COPIED = ("continuation", "continuation_beams"), ("copied_decoder", "copied_decoder_beams")
CROSS_ATTENTION = ("bert", "electra", "nezha", "roberta", "studied_transformer")


def meets(head: str, label: str) -> bool:
    """Whether a network can be built of a head and a body that would meet by what they say of themselves."""
    body = label.removeprefix("transformer ")
    if head in CONTINUED:
        return label.startswith("transformer ")
    if head in COPIED:
        return body in CROSS_ATTENTION
    return BODIES[label].token_types >= getattr(HEADS[head], "type_count", 0)


REFUSED = {
    (name, label)
    for name, head in HEADS.items()
    for label, body in BODIES.items()
    if head.needs_abilities <= body.offers and not meets(name, label)
}
"""Heads and bodies that would meet by what they say of themselves, and are refused where a network is built."""
ON_PLAIN_TEXT = [
    (name, body)
    for name, head in HEADS.items()
    if not head.reads
    for body in BODIES
    if head.needs_abilities <= BODIES[body].offers
]
ON_LABELS = [
    (name, family, body)
    for name, head in HEADS.items()
    for family in sorted(head.reads)
    for body in BODIES
    if head.needs_abilities <= BODIES[body].offers and head.unfit(TaskFamily.model_validate(family)) is None
]


@cache
def tokenizer_of(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return tokenizer.tiny().train(documents("logging", "json"))


@cache
def tokenizer_for(body: str) -> PreTrainedTokenizerFast:
    """The tokenizer with which a recipe uses a kind of body."""
    used = (stage for stage in stages().values() if stage.backbone is not None and stage.backbone.label == body)
    return tokenizer_of(next(stage.tokenizer for stage in used if stage.tokenizer is not None))


STREAMS: dict[tuple[int, str, str], TokenStream] = {}
"""Tokenizer, segmentation and annotations → the text as tokens, which nothing changes: hundreds of pairs share them."""


def stream_for(stage: Stage, tokenizer: PreTrainedTokenizerFast) -> TokenStream:
    """Some text as a stage reads it; `tokenizer` is one of `tokenizer_of`, which are kept."""
    key = (id(tokenizer), repr(stage.segmentation), repr(stage.annotations))
    if key not in STREAMS:
        STREAMS[key] = stream_of(documents("logging"), tokenizer, stage.segmentation, stage.annotations)
    return STREAMS[key]


def stage_of(head: str, body: str) -> Stage:
    """A stage on plain text with this head on this body, one that trains if there is one; else any with the head."""
    pairs = [
        stage
        for stage in stages().values()
        if stage.kind.reads_plain_text
        and (stage.head and stage.head.name, stage.backbone and stage.backbone.label) == (head, body)
    ]
    if pairs:
        return min(pairs, key=lambda stage: not stage.trains)
    # of another body, one whose rows any body reads
    others = [
        stage
        for stage in stages().values()
        if stage.head and stage.head.name == head and stage.trains and not stage.corruption and not stage.lines
    ]
    trained = [stage for stage in stages().values() if stage.trains and stage.head and stage.head.name == head]
    if chosen := [*others, *trained]:
        return chosen[0]
    # a head of no stage on these corpora needs no more than the rows of any
    used = where_used().get(("heads", head))
    return stages()["regime/general" if used is None else used]


def network(head: Head, body: str, tokenizer: PreTrainedTokenizerFast, task: Task | None) -> PreTrainedModel:
    register()
    config = BODIES[body].tiny().config(tokenizer, LENGTH)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    built = head.build(config, task)
    before = {name: value.clone() for name, value in built.state_dict().items()}
    head.begin(built)
    after, prefix = built.state_dict(), backbone_prefix(built)
    assert {name: value.shape for name, value in after.items()} == {name: old.shape for name, old in before.items()}
    moved = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert not any(prefix and name.startswith(prefix) for name in moved), "a head begins, and its backbone stays"
    built.eval()
    return built


def tensors(arrays: dict[Field, Any]) -> dict[Field, torch.Tensor]:
    return {name: torch.from_numpy(value) for name, value in arrays.items()}


def check_signals(head: Head, body: str, network: PreTrainedModel, batch: dict[Field, torch.Tensor]) -> None:
    """All that the head says of this body is said, in the shapes of the vocabulary, and finite."""
    abilities = BODIES[body].offers
    wanted = {one for one in head.provides if head.needs_ability_for.get(one) in (None, *abilities)}
    if head.reads and not network.config.tie_word_embeddings:
        wanted.discard(Signal.NEXT_LOGITS)  # computed by the input embeddings, and refused where it cannot be
    said = head.signals(network, batch, frozenset(wanted))
    assert wanted <= said.keys()
    rows, length = batch[Field.INPUT_IDS].shape
    size, hidden = network.config.vocab_size, network.config.hidden_size
    asked = len(batch.get(Field.MASKED_LABELS, ()))
    shapes: dict[Signal, tuple[int | None, ...]] = {
        Signal.MASKED_LOGITS: (asked, size),
        Signal.BOUNDARY_LOGITS: (asked, size),
        Signal.NEXT_LOGITS: (rows, length, size),
        Signal.REPLACED_LOGITS: (rows, length),
        Signal.POOLED: (rows, hidden),
        Signal.SEGMENT_LOGITS: (rows, 2),
        Signal.TAG_LOGITS: (rows, length, None),
        Signal.SPAN_LOGITS: (rows, length, 2),
        Signal.SCORE: (len(batch.get(Field.SCORES, ())),),
        Signal.LOGITS: (len(batch.get(Field.LABELS, ())), None),
        Signal.NOISE_LOGITS: (None, 1 + batch.get(Field.NEGATIVES, torch.empty(0, 0)).shape[-1]),
    }
    if Field.TARGET_IDS in batch:
        shapes[Signal.TARGET_LOGITS] = (*batch[Field.TARGET_IDS].shape, size)
    for signal in wanted:
        value = said[signal]
        assert all(not bool(one.isnan().any()) for one in (value if isinstance(value, tuple) else (value,))), signal
        if signal in shapes:
            assert len(value.shape) == len(shapes[signal]), signal
            assert all(w is None or w == h for w, h in zip(shapes[signal], value.shape, strict=True)), signal
    if Signal.ATTENTION_SCORES in wanted:
        scores = said[Signal.ATTENTION_SCORES]
        assert len(scores) == len(said[Signal.HIDDEN_STATES]) - 1
        assert all(one.shape == (rows, network.config.num_attention_heads, length, length) for one in scores)
    if Signal.HIDDEN_STATES in wanted:
        assert all(layer.shape[:2] == (rows, length) for layer in said[Signal.HIDDEN_STATES])


@pytest.mark.parametrize(("name", "body"), ON_PLAIN_TEXT)
@torch.no_grad()
def test_a_head_on_plain_text_says_what_it_provides(name: str, body: str) -> None:
    head, stage = HEADS[name], stage_of(name, body)
    assert stage.tokenizer is not None
    tokenizer = tokenizer_of(stage.tokenizer)
    stream = stream_for(stage, tokenizer)
    made = PlainBatches(stream, tokenizer, stage.layout, stage.corruption, rows=6, length=LENGTH, steps=1, seed=0)
    batch = tensors(made.batch(0))
    assert head.needs - {Field.MEMORY} <= batch.keys()
    built = network(head, body, tokenizer, None)
    check_signals(head, body, built, batch)
    with pytest.raises(NotImplementedError, match="plain text"):
        head.encode([], Task(TaskFamily.default(), ()), tokenizer, LENGTH)


@cache
def examples(family: str) -> tuple[tuple[Row, ...], Task]:
    rows = parquet.read_table(tables(family)["train"]).to_pylist()
    chosen = TaskFamily.model_validate(family)
    # short ones: what a head writes has a longest length
    short = sorted(rows, key=lambda row: len(row["text"]))[:EXAMPLES]
    return tuple(short), Task(chosen, tuple(chosen.labels(rows)))


@pytest.mark.parametrize(("name", "family", "body"), ON_LABELS)
@torch.no_grad()
def test_a_head_encodes_and_answers_every_example(name: str, family: str, body: str) -> None:
    head, tokenizer, (rows, task) = HEADS[name], tokenizer_for(body), examples(family)
    encoded = head.encode(rows, task, tokenizer, LENGTH)
    assert np.array_equal(np.unique(encoded.owners), np.arange(len(rows))) and (np.diff(encoded.owners) >= 0).all()
    assert len(encoded) == len(encoded.lengths) == len(encoded.owners)
    known, unknown = (encoded.collate(np.arange(2)), head.encode(rows, task, tokenizer, LENGTH, answers=False))
    assert head.labels | head.needs <= known.keys() and known[Field.INPUT_IDS].shape[1] <= LENGTH
    assert not head.labels & unknown.collate(np.arange(2)).keys(), "answers are in a batch that should have none"
    if (name, body) in REFUSED:
        with pytest.raises(RecipeError, match=body.removeprefix("transformer ")):
            network(head, body, tokenizer, task)
        return
    built = network(head, body, tokenizer, task)
    assert any(key.startswith(backbone_prefix(built)) for key in built.state_dict()), "the body is not found in it"
    check_signals(head, body, built, tensors(known))
    answers = head.answer(built, unknown, heard(head, built, unknown), task, tokenizer)
    gold = [task.family.gold(row) for row in rows]
    scores = task.family.scores(task.family.statistics(gold, answers, task.labels))
    assert len(answers) == len(rows) and tuple(scores) == task.family.metrics
    assert all(-1 <= score <= 1 for score in scores.values())


def heard(
    head: Head, network: PreTrainedModel, encoded: EncodedExamples
) -> Iterator[tuple[NDArray[np.int64], dict[Field, torch.Tensor], dict[Signal, Any]]]:
    """What `network` says of all items, last items first."""
    for chosen in np.array_split(np.arange(len(encoded))[::-1], 3):
        batch = tensors(encoded.collate(chosen))
        yield chosen, batch, head.signals(network, batch, head.answers_from) if head.answers_from else {}
