"""Going on from a prompt, against GPT-2's own loss and a search by hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.heads.continuation import ContinuationHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.sequence_to_sequence import SequenceToSequence
from pipelines.parts.tokenizers.gpt_bpe import GPTBPE
from pipelines.task_families import Task, TaskFamily
from pipelines.task_families.encoding import IGNORED
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.heads.small_parts import tensors
from tests.small_corpus import LABELS, documents

HEAD = ContinuationHead(longest=8)
LENGTH = 48
ROWS = [{"text": documents(label)[row], "label": label} for row in range(3) for label in LABELS]
ROWS[4] = {"text": "Short.", "label": LABELS[1]}
TASK = Task(TaskFamily.model_validate("text_classification"), LABELS)


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    return GPTBPE(vocab_size=600).train(documents("logging", "argparse", "email", "json"))


def network() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=640, n_embd=32, n_layer=2, n_head=2, n_positions=64, bos_token_id=None, eos_token_id=None
    )
    built = HEAD.build(config, TASK)
    assert isinstance(built, GPT2LMHeadModel)
    with torch.no_grad():  # new weights hardly look at the prompt
        for block in built.transformer.h:
            block.attn.c_attn.weight.mul_(12)
            block.attn.c_proj.weight.mul_(12)
    return built.eval()


def written(body: Any, items: Any) -> list[Any]:
    parts = np.array_split(np.arange(len(items))[::-1], 2)
    return HEAD.answer(body, items, ((part, tensors(items, part), {}) for part in parts), TASK, tokenizer())


def test_a_row_is_its_prompt_and_its_answer_in_the_frame_of_two_texts() -> None:
    items = HEAD.encode(ROWS, TASK, tokenizer(), LENGTH)
    batch = tensors(items, np.arange(len(items)))
    rows = zip(batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK], batch[Field.TARGET_IDS], ROWS, strict=True)
    for ids, mask, target, row in rows:
        wanted = target[target != IGNORED]
        whole = tokenizer().decode([*ids[mask == 1], wanted[-1]])
        assert whole.startswith("<s> text: ") and whole.endswith(f"<$> {row['label']}<e>") and mask.sum() <= LENGTH
        assert tokenizer().decode(wanted) == f" {row['label']}<e>"
    assert tokenizer().decode(items.sources[4]) == "<s> text: Short. label:<$>"  # type: ignore[attr-defined]


def test_the_loss_is_gpt2s_own_over_the_answers() -> None:
    items, body = HEAD.encode(ROWS, TASK, tokenizer(), LENGTH), network()
    batch = tensors(items, np.arange(len(items)))
    heard = HEAD.signals(body, batch, frozenset({Signal.TARGET_LOGITS}))
    told = SequenceToSequence().loss(TrainingStep(batch, heard, body, lambda *_: {}))["sequence_to_sequence"]
    # the same rows with their last token, and labels on the answers alone
    ids = torch.nn.functional.pad(batch[Field.INPUT_IDS], (0, 1))
    labels = torch.full_like(ids, IGNORED)
    for row, (mask, target) in enumerate(zip(batch[Field.ATTENTION_MASK], batch[Field.TARGET_IDS], strict=True)):
        wanted, end = target[target != IGNORED], int(mask.sum()) + 1
        ids[row, end - 1] = wanted[-1]
        labels[row, end - len(wanted) : end] = wanted
    with torch.no_grad():
        assert float(told.detach()) == pytest.approx(float(body(ids, labels=labels).loss), rel=1e-6)


@torch.no_grad()
def test_what_is_written_goes_on_from_the_prompt_alone_whatever_stands_beside_it() -> None:
    body, end = network(), tokenizer().convert_tokens_to_ids("<e>")
    shown, hidden = (HEAD.encode(ROWS, TASK, tokenizer(), LENGTH, answers=known) for known in (True, False))
    expected = []
    for prompt in hidden.sources:  # type: ignore[attr-defined]
        said = prompt.tolist()
        while len(said) < len(prompt) + HEAD.longest and said[-1] != end:
            said.append(int(body(torch.tensor([said])).logits[0, -1, : len(tokenizer())].argmax()))
        expected.append(tokenizer().decode(said[len(prompt) :], skip_special_tokens=True).strip())
    assert len(set(expected)) > 2, "the test must tell rows apart"
    assert written(body, shown) == expected and written(body, hidden) == expected


def test_a_small_network_learns_to_go_on_with_the_labels() -> None:
    items, body = HEAD.encode(ROWS, TASK, tokenizer(), LENGTH), network()
    batch, optimizer = tensors(items, np.arange(len(items))), torch.optim.AdamW(body.parameters(), lr=3e-3)
    for _ in range(40):
        heard = HEAD.signals(body, batch, frozenset({Signal.TARGET_LOGITS}))
        (term,) = SequenceToSequence().loss(TrainingStep(batch, heard, body, lambda *_: {})).values()
        optimizer.zero_grad()
        term.backward()
        optimizer.step()
    assert written(body, items) == [row["label"] for row in ROWS]


def test_what_cannot_go_on_is_refused() -> None:
    with pytest.raises(RecipeError, match="rows of 10 tokens have no room for a text besides an answer of 8"):
        HEAD.encode(ROWS, TASK, tokenizer(), 10)
    with pytest.raises(RecipeError, match="awd_lstm does not support generation; use gpt2"):
        HEAD.build(AwdLstm().tiny().config(tokenizer(), 48), TASK)
