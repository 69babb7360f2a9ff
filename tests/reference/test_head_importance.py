"""Heads: their importance is the derivative by an explicit gate (Michel et al. 2019, eq. 2), and a network without some
of them is the whole network with those gated by 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.networks.attention_heads import gated, remove_heads
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.compressions import Batch, Change
from pipelines.parts.compressions.head_pruning import HeadPruning, attention_heads, head_importance
from pipelines.vocabulary import Field, Signal

ARCHITECTURES = ("bert", "roberta", "electra", "gpt2")
HEADS = {"num_attention_heads": 4, "n_head": 4}


@dataclass
class Examples:
    """A calibration over given rows, with cross-entropy as the loss."""

    rows: list[tuple[Tensor, Tensor]]
    seed: int = 0

    def batches(self) -> Iterator[Batch]:
        for ids, labels in self.rows:
            yield {Field.INPUT_IDS: ids, Field.LABELS: labels}

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> Mapping[Signal, Any]:
        return {Signal.LOGITS: network(input_ids=batch[Field.INPUT_IDS]).logits}

    def loss(self, network: PreTrainedModel, batch: Batch) -> Tensor:
        logits = self.signals(network, batch, frozenset())[Signal.LOGITS]
        return nn.functional.cross_entropy(logits, batch[Field.LABELS])

    def decide(self, choose: Callable[[], Change]) -> Change:
        return choose()


def classifier(architecture: str, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    tiny = Transformer(architecture=architecture).tiny()
    dims = {key: HEADS.get(key, value) for key, value in tiny.dims.items()}
    config = tiny.model_copy(update={"dims": dims}).config(tokenizer, 16)
    config._attn_implementation = "eager"
    config.num_labels = 3
    torch.manual_seed(0)
    network = AutoModelForSequenceClassification.from_config(config).double().eval()
    with torch.no_grad():  # fresh weights are so small that attention hardly matters
        for parameter in network.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return network


def examples() -> Examples:
    generator = torch.Generator().manual_seed(1)
    return Examples(
        [
            (torch.randint(5, 200, (rows, 9), generator=generator), torch.randint(0, 3, (rows,), generator=generator))
            for rows in (3, 2)
        ]
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.no_grad()
def test_removed_heads_are_heads_gated_by_zero(architecture: str, tokenizer: PreTrainedTokenizerFast) -> None:
    network = classifier(architecture, tokenizer)
    heads = attention_heads(network)
    removed = {heads[0].path: [1], heads[1].path: [0, 3]}
    masks = [torch.tensor([1.0, 0, 1, 1]), torch.tensor([0.0, 1, 1, 0])]
    ids = examples().rows[0][0]
    whole = network(input_ids=ids).logits
    with gated(heads, masks):
        expected = network(input_ids=ids).logits
    before = network.num_parameters()
    remove_heads(heads, removed)
    assert [one.count for one in attention_heads(network)] == [3, 2]
    torch.testing.assert_close(network(input_ids=ids).logits, expected, rtol=0, atol=1e-12)
    assert (whole - expected).abs().max() > 1e-3
    # four matrices, and the biases of query, key and value
    assert before - network.num_parameters() == 3 * 8 * (4 * 32 + 3)


def test_zeroing_the_columns_of_the_output_projection_is_the_same(tokenizer: PreTrainedTokenizerFast) -> None:
    network = classifier("bert", tokenizer)
    heads = attention_heads(network)
    ids = examples().rows[0][0]
    with torch.no_grad():
        dense = network.bert.encoder.layer[0].attention.output.dense
        kept = dense.weight.clone()
        dense.weight[:, 8:16] = 0
        expected = network(input_ids=ids).logits
        dense.weight.copy_(kept)
        remove_heads(heads, {"encoder.layer.0": [1]})
        torch.testing.assert_close(network(input_ids=ids).logits, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_importance_is_the_mean_derivative_by_the_gate(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    network, calibration = classifier(architecture, tokenizer), examples()
    heads = attention_heads(network)
    masks = [torch.ones(4, dtype=torch.double) for _ in heads]
    masks[1][2] = 0  # a head that is gone already
    found = head_importance(network, heads, masks, calibration)
    singles = [
        (ids[row : row + 1], labels[row : row + 1]) for ids, labels in calibration.rows for row in range(len(ids))
    ]
    step = 1e-5
    for layer in range(2):
        expected = np.zeros(4)
        for head in range(4):
            for ids, labels in singles:
                losses = []
                for sign in (1, -1):
                    moved = [mask.clone() for mask in masks]
                    moved[layer][head] += sign * step
                    with torch.no_grad(), gated(heads, moved):
                        losses.append(float(nn.functional.cross_entropy(network(input_ids=ids).logits, labels)))
                expected[head] += abs(losses[0] - losses[1]) / (2 * step) / len(singles)
        np.testing.assert_allclose(found[layer], expected / np.linalg.norm(expected), rtol=1e-5)


def test_rounds_remove_the_least_important_of_what_is_left(tokenizer: PreTrainedTokenizerFast) -> None:
    network, calibration = classifier("bert", tokenizer), examples()
    heads = attention_heads(network)
    masks = [torch.ones(4) for _ in heads]
    for _ in range(4):  # one head a round
        scores = head_importance(network, heads, masks, calibration)
        _, layer, head = min(
            (scores[layer][head], layer, head)
            for layer in range(2)
            for head in range(4)
            if masks[layer][head] and masks[layer].sum() > 1
        )
        masks[layer][head] = 0
    expected = {one.path: [head for head in range(4) if not mask[head]] for one, mask in zip(heads, masks, strict=True)}
    change = HeadPruning(share=0.5, rounds=4).choose(network, calibration)
    assert change == {path: gone for path, gone in expected.items() if gone}
    assert [one.count for one in heads] == [4, 4], "to choose changes nothing"
