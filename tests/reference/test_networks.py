"""Networks, masks and scores, against plain transformers and scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import Tensor
from transformers import (
    AutoModel,
    BertConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from pipelines.judging.evaluations.metrics import accuracy, macro_f1
from pipelines.models.opening import ModelRecord, build_network, open_model
from pipelines.parts.compressions.select_layers import SelectLayers
from pipelines.parts.corruptions import TokenIds
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents

TASK = Task(TaskFamily.default(), ("asyncio", "email", "xml"))


def classifier(pooling: str = "mean", layers: int = 2) -> PreTrainedModel:
    config = BertConfig(
        vocab_size=512, hidden_size=32, num_hidden_layers=layers, num_attention_heads=2, intermediate_size=64
    )
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    head = SequenceClassificationHead(pooling=pooling)
    network = build_network(ModelRecord(head=head, family=TASK.family, labels=TASK.labels), config)
    network.eval()
    return network


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    texts = tokenizer(documents("json")[:5], padding=True, truncation=True, max_length=48, return_tensors="pt")
    return {Field.INPUT_IDS: texts["input_ids"], Field.ATTENTION_MASK: texts["attention_mask"]}


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@torch.no_grad()
def test_the_body_of_a_classifier_opens_in_plain_transformers(
    pooling: str, batch: dict[Field, Tensor], tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    network = classifier(pooling)
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    body = AutoModel.from_pretrained(tmp_path, add_pooling_layer=False, attn_implementation="eager")
    theirs = body(batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK], output_hidden_states=True).hidden_states
    again = open_model(tmp_path, "cpu").network
    for ours in (network, again):
        mine = ours(batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK], output_hidden_states=True)
        assert all(torch.equal(a, b) for a, b in zip(mine.hidden_states, theirs, strict=True))
    assert torch.equal(
        again(batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK]).logits,
        network(batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK]).logits,
    )


@torch.no_grad()
def test_mean_pooling_ignores_padding(batch: dict[Field, Tensor]) -> None:
    network = classifier()
    said = network(batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK])
    for row, mask in enumerate(batch[Field.ATTENTION_MASK]):
        alone = network(batch[Field.INPUT_IDS][row : row + 1, : mask.sum()], mask[None, : mask.sum()])
        # another batch shape sums in another order: 1e-5 absolute on values of about one
        torch.testing.assert_close(said.pooled[row], alone.pooled[0], atol=1e-5, rtol=0)
    head = MaskedLMHead()
    torch.manual_seed(0)
    masked = head.build(
        BertConfig(vocab_size=512, hidden_size=32, num_hidden_layers=1, num_attention_heads=2), None
    ).eval()
    pooled = head.signals(masked, batch, frozenset({Signal.POOLED}))[Signal.POOLED]
    length = int(batch[Field.ATTENTION_MASK][0].sum())
    alone = {name: value[:1, :length] for name, value in batch.items()}
    torch.testing.assert_close(
        pooled[0], head.signals(masked, alone, frozenset({Signal.POOLED}))[Signal.POOLED][0], atol=1e-5, rtol=0
    )


@torch.no_grad()
def test_bf16_autocast_agrees_with_float32(batch: dict[Field, Tensor]) -> None:
    network = classifier()
    exact = network(batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK]).logits
    with torch.autocast("cpu", torch.bfloat16):
        rounded = network(batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK]).logits
    assert rounded.dtype is torch.bfloat16
    # bf16 keeps 8 bits: 2^-8 of a logit's size through two layers
    torch.testing.assert_close(rounded.float(), exact, atol=0.02, rtol=0.02)


@pytest.mark.parametrize(
    ("which", "share", "kept"),
    [
        ("spread", 0.5, [1, 3, 5]),
        ("first", 0.5, [0, 1, 2]),
        ("last", 0.5, [3, 4, 5]),
        ("spread", 0.01, [5]),
        ("spread", 1, [*range(6)]),
    ],
)
def test_select_layers_keeps_these_layers(which: str, share: float, kept: list[int]) -> None:
    teacher = classifier(layers=6)
    student = SelectLayers(share=share, which=which).shrink(teacher).network
    assert student.config.num_hidden_layers == len(kept) and teacher.config.num_hidden_layers == 6
    before, after = teacher.state_dict(), student.state_dict()
    for name, value in after.items():
        new = name.partition(".encoder.layer.")[2].partition(".")[0]
        source = name if new == "" else name.replace(f".layer.{new}.", f".layer.{kept[int(new)]}.", 1)
        assert torch.equal(value, before[source]), name


def test_masking_keeps_its_shares(tokenizer: PreTrainedTokenizerFast) -> None:
    ids = np.asarray(
        [i for text in documents("logging", "email") for i in tokenizer.encode(text, add_special_tokens=False)]
    )
    clean = ids[: len(ids) // 128 * 128].reshape(-1, 128)
    tokens = TokenIds(len(tokenizer), tokenizer.mask_token_id, tuple(tokenizer.all_special_ids))
    batch = TokenMask(rate=0.15).apply({Field.INPUT_IDS: clean}, tokens, np.random.default_rng(0))
    positions, labels = batch[Field.MASKED_POSITIONS], batch[Field.MASKED_LABELS]
    ordinary = (~np.isin(clean, tokens.special)).sum(1)
    assert len(positions) == np.maximum(np.rint(0.15 * ordinary), 1).sum()
    became = batch[Field.INPUT_IDS].ravel()[positions]
    masked = (became == tokens.mask).mean()
    # one random token in vocabulary size is drawn as it was: that share counts as kept
    same = (became == labels).mean()
    for share, expected in ((masked, 0.8), (same, 0.1 + 0.1 / len(tokenizer)), (1 - masked - same, 0.1)):
        # five standard deviations of a binomial: one failure in two million
        assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / len(positions))


def test_scores_are_scikit_learns() -> None:
    random = np.random.default_rng(0)
    for classes, size in ((2, 30), (5, 50), (10, 12)):
        truth, predicted = random.integers(classes, size=(2, size))
        assert accuracy(truth, predicted) == pytest.approx(accuracy_score(truth, predicted), abs=1e-12)
        assert macro_f1(truth, predicted) == pytest.approx(f1_score(truth, predicted, average="macro"), abs=1e-12)
