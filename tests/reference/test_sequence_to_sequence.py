"""Writing one text from another, against T5 as transformers has it and against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration
from transformers.trainer_pt_utils import LabelSmoother

from pipelines.errors import DataError
from pipelines.parts.heads.sequence_to_sequence import SequenceToSequenceHead
from pipelines.parts.heads.text_to_text import TextToTextHead, end_of
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.sequence_to_sequence import SequenceToSequence
from pipelines.task_families import Task, TaskFamily
from pipelines.task_families.encoding import IGNORED
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import LABELS, documents

EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "text_classification": [{"text": documents(label)[row], "label": label} for row in range(4) for label in LABELS],
    "pair_classification": [{"text_a": "a request", "text_b": "a response", "label": "other"}],
    "pair_regression": [{"text_a": "parse the header", "text_b": "parse a header", "label": 4.31}],
    "tagging": [{"tokens": ["Ada", "Lovelace", "wrote", "it"], "tags": ["B-person", "I-person", "O", "O"]}],
    "span_extraction": [
        {
            "context": "The parser reads lines.",
            "question": "What reads?",
            "answer_texts": ["parser"],
            "answer_starts": [4],
        },
        {"context": "The parser reads lines.", "question": "Who writes?", "answer_texts": [], "answer_starts": []},
    ],
    "multiple_choice": [
        {"context": "It is a log.", "question": "What is it?", "choices": ["a log", "a file"], "answer": 0}
    ],
    "text_generation": [{"source": documents("json")[0], "target": "Decode and encode."}],
}


def network(
    tokenizer: PreTrainedTokenizerFast, vocabulary: int = 512, attentive: bool = False
) -> T5ForConditionalGeneration:
    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    ids = {"pad_token_id": tokenizer.pad_token_id, "decoder_start_token_id": tokenizer.pad_token_id}
    built = TextToTextHead().build(
        T5Config(vocab_size=vocabulary, eos_token_id=end_of(tokenizer), **sizes, **ids), None
    )
    assert isinstance(built, T5ForConditionalGeneration)
    if attentive:
        with torch.no_grad():  # new weights hardly look at the source
            for name, value in built.named_parameters():
                if "EncDecAttention" in name:
                    value.mul_(6)
    return built.eval()


def encoded(family: str, tokenizer: PreTrainedTokenizerFast, head: TextToTextHead | None = None) -> Any:
    rows = EXAMPLES[family]
    kind = TaskFamily.model_validate(family)
    task = Task(kind, tuple(kind.labels(rows)))
    return task, (head or TextToTextHead()).encode(rows, task, tokenizer, 48)


def batch_of(items: Any) -> dict[Field, Tensor]:
    return {name: torch.from_numpy(value) for name, value in items.collate(np.arange(len(items))).items()}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradient_are_t5s_own_from_shifted_targets(
    smoothing: float, tokenizer: PreTrainedTokenizerFast
) -> None:
    batch = batch_of(encoded("text_classification", tokenizer)[1])
    labels = batch[Field.TARGET_IDS]
    assert (labels == IGNORED).any() and (batch[Field.ATTENTION_MASK] == 0).any()
    ours, theirs = network(tokenizer), network(tokenizer)
    said = SequenceToSequenceHead().signals(ours, batch, frozenset({Signal.TARGET_LOGITS}))
    told = SequenceToSequence(smoothing=smoothing).loss(TrainingStep(batch, said, ours, lambda *_: {}))[
        "sequence_to_sequence"
    ]
    out = theirs(input_ids=batch[Field.INPUT_IDS], attention_mask=batch[Field.ATTENTION_MASK], labels=labels)
    expected = LabelSmoother(epsilon=smoothing)(out, labels) if smoothing else out.loss
    assert float(told.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    told.backward()
    expected.backward()
    for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
        # T5's initial scores are large: gradients up to 10 from sums in another order
        torch.testing.assert_close(mine.grad, its.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", EXAMPLES)
def test_every_family_is_a_source_and_an_answer_that_reads_back(
    family: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    task, items = encoded(family, tokenizer)
    batch = batch_of(items)
    for row, ids, mask, target in zip(
        items.examples,
        *(batch[name] for name in (Field.INPUT_IDS, Field.ATTENTION_MASK, Field.TARGET_IDS)),
        strict=True,
    ):
        whole = tokenizer(task.family.source(row, task.labels))["input_ids"]
        read = ids[mask == 1].tolist()
        assert len(read) == min(48, len(whole)) and read[:-1] == whole[: len(read) - 1] and read[-1] == whole[-1]
        wanted = target[target != IGNORED].tolist()
        assert wanted[-1] == end_of(tokenizer) and end_of(tokenizer) not in wanted[:-1]
        assert "".join(tokenizer.decode(wanted[:-1]).split()) == "".join(task.family.answer_text(row).lower().split())
    assert set(batch) == TextToTextHead.needs
    unlabelled = [{key: value for key, value in row.items() if key not in task.family.target} for row in items.examples]
    bare = TextToTextHead().encode(unlabelled, task, tokenizer, 48, answers=False)
    assert Field.TARGET_IDS not in bare.collate(np.arange(1))
    assert np.array_equal(bare.collate(np.arange(len(bare)))[Field.INPUT_IDS], batch[Field.INPUT_IDS].numpy())


def written(
    head: TextToTextHead, body: T5ForConditionalGeneration, items: Any, task: Task, tokenizer: PreTrainedTokenizerFast
) -> list[Any]:
    halves = np.array_split(np.arange(len(items))[::-1], min(2, len(items)))
    heard = (
        (part, {name: torch.from_numpy(value) for name, value in items.collate(part).items()}, {}) for part in halves
    )
    return head.answer(body, items, heard, task, tokenizer)


@torch.no_grad()
def test_one_beam_writes_the_likeliest_token_each_time(tokenizer: PreTrainedTokenizerFast) -> None:
    head = TextToTextHead(longest=6)
    task, items = encoded("text_classification", tokenizer)
    body = network(tokenizer, vocabulary=576, attentive=True)
    expected = []
    for item in range(len(items)):
        batch = items.collate(np.array([item]))
        ids = torch.from_numpy(batch[Field.INPUT_IDS][batch[Field.ATTENTION_MASK] == 1])[None]
        said = [tokenizer.pad_token_id]
        while len(said) <= 6 and end_of(tokenizer) not in said[1:]:
            scores = body(input_ids=ids, decoder_input_ids=torch.tensor([said])).logits[0, -1, : len(tokenizer)]
            said.append(int(scores.argmax()))
        expected.append(tokenizer.decode(said, skip_special_tokens=True).strip())
    assert len(set(expected)) > 1, "the test must tell rows apart"
    assert written(head, body, items, task, tokenizer) == expected


@torch.no_grad()
def test_enough_beams_find_the_likeliest_text_of_all(tokenizer: PreTrainedTokenizerFast) -> None:
    body, end, size = network(tokenizer, attentive=True), end_of(tokenizer), len(tokenizer)
    task, items = encoded("text_classification", tokenizer)
    begun = torch.stack([torch.full((size,), tokenizer.pad_token_id), torch.arange(size)], 1)
    expected = []
    for ids in batch_of(items)[Field.INPUT_IDS]:
        ids = ids[ids != tokenizer.pad_token_id]
        hidden = body.encoder(input_ids=ids[None]).last_hidden_state.expand(size, -1, -1)
        chances = body(encoder_outputs=(hidden,), decoder_input_ids=begun).logits.log_softmax(-1)
        # mean log-likelihood of every text of two tokens; one that ends at once is of one
        texts = (chances[:, 0].gather(1, begun[:, 1:]) + chances[:, 1]) / 2
        texts[end] = chances[0, 0, end]
        first, second = divmod(int(texts.argmax()), size)
        expected.append(tokenizer.decode([first, second], skip_special_tokens=True).strip())
    assert written(TextToTextHead(longest=2, beams=size), body, items, task, tokenizer) == expected
    assert written(TextToTextHead(longest=2), body, items, task, tokenizer) != expected, "greedy writing finds them too"


def test_a_small_network_learns_to_write_the_labels(tokenizer: PreTrainedTokenizerFast) -> None:
    task, items = encoded("text_classification", tokenizer)
    batch, body, head = batch_of(items), network(tokenizer), TextToTextHead()
    optimizer = torch.optim.AdamW(body.parameters(), lr=3e-3)
    for _ in range(60):
        said = head.signals(body, batch, frozenset({Signal.TARGET_LOGITS}))
        term = SequenceToSequence().loss(TrainingStep(batch, said, body, lambda *_: {}))["sequence_to_sequence"]
        optimizer.zero_grad()
        term.backward()
        optimizer.step()
    assert written(head, body, items, task, tokenizer) == [row["label"] for row in items.examples]


def test_an_answer_of_a_closed_set_must_fit_and_an_open_one_is_cut_without_an_end(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    with pytest.raises(
        DataError,
        match=r"row 0: its answer 'email' has \d+ tokens, more than the 1 that text_to_text generates; raise `longest`",
    ):
        encoded("text_classification", tokenizer, TextToTextHead(longest=1))
    _, items = encoded("text_generation", tokenizer, TextToTextHead(longest=2))
    (target,) = batch_of(items)[Field.TARGET_IDS]
    assert (target != IGNORED).sum() == 2 and end_of(tokenizer) not in target
