"""Writing into masks under UniLM's mask, against transformers' BERT under the same explicit mask and brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from pipelines.errors import DataError, RecipeError
from pipelines.parts.attention.sequence_to_sequence import SequenceToSequenceAttention
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.heads.masked_target import TARGET_STARTS, MaskedTargetHead
from pipelines.parts.heads.text_to_text import end_of
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.masked_target import MaskedTarget
from pipelines.task_families import Task, TaskFamily
from pipelines.task_families.encoding import IGNORED
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import LABELS, documents

ROWS = [{"text": documents(label)[row], "label": label} for row in range(2) for label in LABELS]
ROWS[1] = {"text": "Short.", "label": LABELS[1]}
TASK = Task(TaskFamily.model_validate("text_classification"), LABELS)
LENGTH, LOGITS = 48, frozenset({Signal.TARGET_LOGITS})


def network(tokenizer: PreTrainedTokenizerFast, architecture: str = "bert") -> PreTrainedModel:
    torch.manual_seed(0)
    config = Transformer(architecture=architecture).tiny().config(tokenizer, LENGTH)
    config._attn_implementation = "eager"
    built = MaskedTargetHead().build(config, TASK)
    built.eval()
    for parameter in built.parameters():  # initial weights are so small that attention hardly matters
        parameter.data += 0.2 * torch.randn_like(parameter)
    return built


def batch_of(items: Any) -> dict[Field, Tensor]:
    return {name: torch.from_numpy(value) for name, value in items.collate(np.arange(len(items))).items()}


def explicit(body: PreTrainedModel, source: list[int], target: list[int]) -> Tensor:
    """[T, V]: log-probabilities behind the tokens of `target` by transformers' own network, one row without padding."""
    length, width = len(source) + len(target), len(source)
    mask = torch.full((1, 1, length, length), -1e9)
    for token in range(length):
        mask[..., token, : max(width, token + 1) if token >= width else width] = 0
    types = torch.tensor([[0] * width + [1] * len(target)])
    ids = torch.tensor([source + target])
    scores: Tensor = body(input_ids=ids, token_type_ids=types, attention_mask=mask).logits[0, width:]
    return scores.log_softmax(-1)


def written(head: MaskedTargetHead, body: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> list[list[int]]:
    """The tokens that `head` writes for every row, up to the end; the rows are read in two batches."""
    items = head.encode(ROWS, TASK, tokenizer, LENGTH, answers=False)
    result: dict[int, list[int]] = {}
    for part in np.array_split(np.arange(len(items))[::-1], 2):
        batch = {name: torch.from_numpy(value) for name, value in items.collate(part).items()}
        tokens = head._generate_for(body, items, part, batch, tokenizer).tolist()
        result |= dict(zip(part.tolist(), tokens, strict=True))
    end = end_of(tokenizer)
    whole = [result[row] for row in range(len(ROWS))]
    assert all(set(row[row.index(end) + 1 :]) <= {tokenizer.pad_token_id} for row in whole if end in row)
    return [row[: row.index(end) + 1] if end in row else row for row in whole]


def test_a_row_is_the_source_and_a_mask_for_each_token_of_the_answer(tokenizer: PreTrainedTokenizerFast) -> None:
    items = MaskedTargetHead(longest=8).encode(ROWS, TASK, tokenizer, LENGTH)
    batch = batch_of(items)
    for row, example in enumerate(ROWS):
        start, target = int(batch[TARGET_STARTS][row]), batch[Field.TARGET_IDS][row]
        wanted = target[target != IGNORED].tolist()
        real = batch[Field.INPUT_IDS][row][batch[Field.ATTENTION_MASK][row] == 1].tolist()
        assert tokenizer.decode(wanted[:-1]) == example["label"] and wanted[-1] == end_of(tokenizer)
        whole = tokenizer(f"text: {example['text']} label:", truncation=True, max_length=LENGTH - 8)["input_ids"]
        assert real == whole + [tokenizer.mask_token_id] * len(wanted) and start == len(whole)
    assert (batch[Field.ATTENTION_MASK] == 0).any(), "a row is padded"


@pytest.mark.parametrize("types", [(0, 1), (4, 5)])
def test_tokens_attend_as_under_the_attention_pattern(
    types: tuple[int, int], tokenizer: PreTrainedTokenizerFast
) -> None:
    items = MaskedTargetHead(longest=8, types=types).encode(ROWS, TASK, tokenizer, LENGTH)
    batch = items.collate(np.arange(len(items)))
    visible, real = batch.pop(Field.VISIBLE), batch[Field.ATTENTION_MASK] == 1
    assert np.array_equal(visible[real], SequenceToSequenceAttention().apply(batch)[Field.VISIBLE][real])
    assert not visible.all() and set(batch[Field.TOKEN_TYPE_IDS][real]) == {*types}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_that_of_the_masked_tokens_of_an_explicit_row(
    smoothing: float, tokenizer: PreTrainedTokenizerFast
) -> None:
    head, body = MaskedTargetHead(longest=8), network(tokenizer)
    rows = [{"source": documents(label)[0], "target": "Return a formatted string."} for label in LABELS]
    family = TaskFamily.model_validate("text_generation")
    batch = batch_of(head.encode(rows, Task(family, ()), tokenizer, LENGTH))
    objective = MaskedTarget(rate=0.6, smoothing=smoothing)
    step = TrainingStep(batch, {}, body, lambda *_: {})
    torch.manual_seed(1)
    step.batch = objective.rewrite(step)
    step.signals = head.signals(body, step.batch, LOGITS)
    loss = float(objective.loss(step)["sequence_to_sequence"].detach())
    total, number, shares = 0.0, 0, []
    for row, target in enumerate(batch[Field.TARGET_IDS]):
        start, labels = int(batch[TARGET_STARTS][row]), step.batch[Field.TARGET_IDS][row]
        tokens, masked = target[target != IGNORED].tolist(), labels != IGNORED
        read = [tokenizer.mask_token_id if masked[at] else token for at, token in enumerate(tokens)]
        assert step.batch[Field.INPUT_IDS][row, start : start + len(tokens)].tolist() == read
        with torch.no_grad():
            scores = explicit(body, batch[Field.INPUT_IDS][row, :start].tolist(), read).double()
        shares.append(masked.sum() / len(tokens))
        for at in torch.nonzero(masked).flatten().tolist():
            even = float(scores[at].mean())
            total -= (1 - smoothing) * float(scores[at, tokens[at]]) + smoothing * even
            number += 1
    assert loss == pytest.approx(total / number, rel=1e-5)
    assert objective.counts(batch, body) == {"sequence_to_sequence": number}
    assert all(abs(float(share) - 0.6) < 0.1 for share in shares), "a share of every target is masked"


def test_masks_are_drawn_anew_and_never_none(tokenizer: PreTrainedTokenizerFast) -> None:
    body, drawn = network(tokenizer), set()
    batch = batch_of(MaskedTargetHead(longest=8).encode(ROWS, TASK, tokenizer, LENGTH))
    for seed in range(8):
        torch.manual_seed(seed)
        labels = MaskedTarget(rate=0.01).rewrite(TrainingStep(batch, {}, body, lambda *_: {}))[Field.TARGET_IDS]
        assert ((labels != IGNORED).sum(1) == 1).all()
        drawn.add(tuple((labels != IGNORED).flatten().tolist()))
    assert len(drawn) > 1


@pytest.mark.parametrize("architecture", ["bert", "electra", "albert", "nezha"])
@torch.no_grad()
def test_one_beam_writes_the_likeliest_token_behind_each_mask(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Of backbones that keep the keys of earlier tokens, and of two that do not."""
    head, body = MaskedTargetHead(longest=6), network(tokenizer, architecture)
    items = head.encode(ROWS, TASK, tokenizer, LENGTH, answers=False)
    expected = []
    for source in items.sources:  # type: ignore[attr-defined]
        text: list[int] = []
        while len(text) < 6 and end_of(tokenizer) not in text:
            scores = explicit(body, source.tolist(), [*text, tokenizer.mask_token_id])
            text.append(int(scores[-1, : len(tokenizer)].argmax()))
        expected.append(text)
    assert len({*map(tuple, expected)}) > 1, "the test must tell rows apart"
    assert written(head, body, tokenizer) == expected


@pytest.mark.parametrize("penalty", [0.0, 3.0])
@torch.no_grad()
def test_enough_beams_write_the_best_text_of_all(penalty: float, tokenizer: PreTrainedTokenizerFast) -> None:
    body, end, size, mask = network(tokenizer), end_of(tokenizer), len(tokenizer), int(tokenizer.mask_token_id)
    body.get_output_embeddings().bias.data[end] += 6  # texts of one and of two tokens compete
    items = MaskedTargetHead(longest=2).encode(ROWS, TASK, tokenizer, LENGTH, answers=False)
    expected = []
    for source in items.sources:  # type: ignore[attr-defined]
        first = explicit(body, source.tolist(), [mask])[-1, :size]
        scores: dict[tuple[int, ...], float] = {(end,): float(first[end])}
        for token in first.topk(40).indices.tolist():
            if token != end:
                second = explicit(body, source.tolist(), [token, mask])[-1, :size]
                scores[token, int(second.argmax())] = float(first[token] + second.max()) / 2**penalty
        expected.append([*max(scores, key=scores.__getitem__)])
    head = MaskedTargetHead(longest=2, beams=size // 2, length_penalty=penalty)
    assert written(head, body, tokenizer) == expected
    assert {len(text) for text in expected} == ({1} if penalty == 0 else {2}), "the penalty decides"


def test_a_small_network_learns_to_write_the_labels(tokenizer: PreTrainedTokenizerFast) -> None:
    head, body, objective = MaskedTargetHead(longest=8), network(tokenizer), MaskedTarget()
    items = head.encode(ROWS, TASK, tokenizer, LENGTH)
    optimizer = torch.optim.AdamW(body.parameters(), lr=3e-3)
    for _ in range(80):
        step = TrainingStep(batch_of(items), {}, body, lambda *_: {})
        step.batch = objective.rewrite(step)
        step.signals = head.signals(body, step.batch, LOGITS)
        loss = objective.loss(step)["sequence_to_sequence"]
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
    texts = [tokenizer.decode(text, skip_special_tokens=True) for text in written(head, body, tokenizer)]
    assert texts == [row["label"] for row in ROWS]


def test_what_cannot_be_written_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(RecipeError, match="rows of 10 tokens have no room for a text besides an answer of 8 and"):
        MaskedTargetHead(longest=8).encode(ROWS, TASK, tokenizer, 10)
    with pytest.raises(DataError, match=r"row 0: its answer 'email' has \d+ tokens, more than the 1 that masked_"):
        MaskedTargetHead(longest=1).encode(ROWS, TASK, tokenizer, LENGTH)
    with pytest.raises(ValueError, match="types are two different numbers from 0, that of the source first"):
        MaskedTargetHead(types=(1, 1))
    config = Transformer(architecture="bert", positions=64).tiny().config(tokenizer, LENGTH)
    with pytest.raises(RecipeError, match="have the token types 4 and 5, and bert has 2 types; raise"):
        MaskedTargetHead(types=(4, 5)).build(config, TASK)
