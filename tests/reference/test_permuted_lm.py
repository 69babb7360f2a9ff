"""Two streams, permuted orders and memory, against XLNet as transformers has it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerFast, XLNetConfig, XLNetLMHeadModel

from pipelines.parts.corruptions import TokenIds
from pipelines.parts.corruptions.permutation import Permutation
from pipelines.parts.heads.permuted_lm import PermutedLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.permuted_lm import PermutedLM
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents

HEAD = PermutedLMHead()
LENGTH, PREDICTED = 24, 4
LOGITS = frozenset({Signal.MASKED_LOGITS})
WITH_MEMORY = LOGITS | {Signal.MEMORY}


def config(**changes: int) -> XLNetConfig:
    return XLNetConfig(vocab_size=512, d_model=32, n_layer=3, n_head=2, d_inner=64, **{"mem_len": LENGTH, **changes})


def network(**changes: int) -> XLNetLMHeadModel:
    torch.manual_seed(0)
    built = HEAD.build(config(**changes), None)
    assert isinstance(built, XLNetLMHeadModel)
    with torch.no_grad():  # the usual initialisation attends almost evenly: let attention matter
        for name, value in built.named_parameters():
            if value.dim() > 1 and "embedding" not in name:
                value.mul_(8)
    return built.eval()


def rows(tokenizer: PreTrainedTokenizerFast, begin: int = 0, count: int = 4) -> Tensor:
    text = tokenizer(" ".join(documents("json")), add_special_tokens=False, verbose=False)["input_ids"]
    ids = torch.tensor(text[: count * 4 * LENGTH]).reshape(count, 4 * LENGTH)
    return ids[:, begin : begin + LENGTH].contiguous()


def permuted(ids: Tensor, seed: int) -> dict[Field, Tensor]:
    arrays = Permutation().apply(
        {Field.INPUT_IDS: ids.numpy()}, TokenIds(512, 4, (0, 1, 2, 3, 4)), np.random.default_rng(seed)
    )
    return {name: torch.from_numpy(value) for name, value in arrays.items()}


@torch.no_grad()
def test_the_loss_is_xlnets_own(tokenizer: PreTrainedTokenizerFast) -> None:
    body, batch = network(), permuted(rows(tokenizer), seed=0)
    theirs = body(
        batch[Field.INPUT_IDS],
        perm_mask=batch[Field.PERMUTATION_MASK],
        target_mapping=batch[Field.TARGET_MAPPING],
        labels=batch[Field.MASKED_LABELS].reshape(-1, PREDICTED),
    ).loss
    step = TrainingStep(batch, HEAD.signals(body, batch, LOGITS), body, lambda *_: {})
    assert float(PermutedLM().loss(step)["permuted_lm"]) == pytest.approx(float(theirs), rel=1e-6)


@torch.no_grad()
def test_a_prediction_depends_on_what_precedes_it_in_the_order_and_on_nothing_else(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    body, batch = network(), permuted(rows(tokenizer, count=1), seed=1)
    before = HEAD.signals(body, batch, LOGITS)[Signal.MASKED_LOGITS]
    hidden = batch[Field.PERMUTATION_MASK][0, batch[Field.TARGET_MAPPING][0].argmax(1)]
    for position in range(LENGTH):
        changed = batch[Field.INPUT_IDS].clone()
        changed[0, position] = (changed[0, position] + 100) % 512
        after = HEAD.signals(body, {**batch, Field.INPUT_IDS: changed}, LOGITS)[Signal.MASKED_LOGITS]
        # what is not to be seen has weight exactly 0, so the comparison is exact
        same = [bool(torch.equal(one, two)) for one, two in zip(before, after, strict=True)]
        assert same == [bool(value) for value in hidden[:, position]], f"token {position}"


@torch.no_grad()
def test_memory_is_hugging_faces_and_equals_reading_both_segments_at_once(tokenizer: PreTrainedTokenizerFast) -> None:
    body, first = network(), permuted(rows(tokenizer), seed=2)
    second = permuted(rows(tokenizer, begin=LENGTH), seed=3)
    remembered = HEAD.signals(body, first, WITH_MEMORY)[Signal.MEMORY]
    ours = HEAD.signals(body, {**second, Field.MEMORY: remembered}, WITH_MEMORY)
    names = {"input_ids": Field.INPUT_IDS, "perm_mask": Field.PERMUTATION_MASK, "target_mapping": Field.TARGET_MAPPING}
    mems = body(**{key: first[name] for key, name in names.items()}, use_mems=True).mems
    theirs = body(**{key: second[name] for key, name in names.items()}, mems=mems, use_mems=True)
    assert torch.equal(ours[Signal.MASKED_LOGITS], theirs.logits.flatten(0, 1))
    assert all(torch.equal(mine, its) for mine, its in zip(ours[Signal.MEMORY], theirs.mems, strict=True))
    assert all(memory.shape == (LENGTH, 4, 32) and not memory.requires_grad for memory in ours[Signal.MEMORY])

    # one row of both segments, whose first half must not see its second
    mask = torch.zeros(4, 2 * LENGTH, 2 * LENGTH)
    mask[:, :LENGTH, :LENGTH], mask[:, LENGTH:, LENGTH:] = first[Field.PERMUTATION_MASK], second[Field.PERMUTATION_MASK]
    mask[:, :LENGTH, LENGTH:] = 1
    whole = {
        Field.INPUT_IDS: torch.cat([first[Field.INPUT_IDS], second[Field.INPUT_IDS]], 1),
        Field.PERMUTATION_MASK: mask,
        Field.TARGET_MAPPING: torch.nn.functional.pad(second[Field.TARGET_MAPPING], (LENGTH, 0)),
    }
    at_once = HEAD.signals(body, whole, LOGITS)[Signal.MASKED_LOGITS]
    torch.testing.assert_close(ours[Signal.MASKED_LOGITS], at_once, atol=1e-4, rtol=1e-4)
    forgotten = HEAD.signals(body, second, LOGITS)[Signal.MASKED_LOGITS]
    assert (forgotten - at_once).abs().max() > 0.01, "without its memory the second segment reads otherwise"


@torch.no_grad()
def test_a_body_without_a_length_of_memory_remembers_nothing(tokenizer: PreTrainedTokenizerFast) -> None:
    body, batch = network(mem_len=0), permuted(rows(tokenizer), seed=0)
    said = HEAD.signals(body, batch, WITH_MEMORY)
    assert said[Signal.MEMORY] == ()
    again = HEAD.signals(body, {**batch, Field.MEMORY: said[Signal.MEMORY]}, LOGITS)
    assert torch.equal(again[Signal.MASKED_LOGITS], said[Signal.MASKED_LOGITS])


@torch.no_grad()
def test_hidden_states_are_the_content_streams(tokenizer: PreTrainedTokenizerFast) -> None:
    body, batch = network(), permuted(rows(tokenizer), seed=0)
    said = HEAD.signals(body, batch, frozenset({Signal.HIDDEN_STATES, Signal.POOLED}))
    alone = body.transformer(batch[Field.INPUT_IDS], perm_mask=batch[Field.PERMUTATION_MASK], output_hidden_states=True)
    assert len(said[Signal.HIDDEN_STATES]) == 4
    for mine, its in zip(said[Signal.HIDDEN_STATES], alone.hidden_states, strict=True):
        torch.testing.assert_close(mine, its, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(said[Signal.POOLED], alone.hidden_states[-1].mean(1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("side", ["right", "left"])
@torch.no_grad()
def test_padding_on_either_side_is_harmless_behind_an_attention_mask(
    side: str, tokenizer: PreTrainedTokenizerFast, tmp_path: object
) -> None:
    # XLNet was published with padding on the left; its positions are relative, so only the mask matters
    body: PreTrainedModel = AutoModel.from_config(config()).eval()
    ids = rows(tokenizer, count=1)
    alone = body(ids).last_hidden_state
    padding = (0, 8) if side == "right" else (8, 0)
    padded, mask = (torch.nn.functional.pad(value, padding, value=0) for value in (ids, torch.ones_like(ids)))
    said = body(padded, attention_mask=mask).last_hidden_state[mask == 1]
    torch.testing.assert_close(said, alone[0], atol=1e-5, rtol=1e-5)
    unmasked = body(padded).last_hidden_state[mask == 1]
    assert (unmasked - alone[0]).abs().max() > 1e-3, "without the mask padding is read"
