"""Strategies that choose when a layer trains and how fast: tables of the paper, and what really moves."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from pipelines.errors import RecipeError
from pipelines.parts.objectives.layer_by_layer import current_layer
from pipelines.parts.strategies import ParameterGroup, Strategy, TrainingProgress
from pipelines.parts.strategies.chain_thaw import ChainThaw
from pipelines.parts.strategies.discriminative import Discriminative
from pipelines.parts.strategies.full import Full
from pipelines.parts.strategies.gradual_unfreezing import GradualUnfreezing
from pipelines.parts.strategies.progressive_transfer import ProgressiveTransfer
from pipelines.parts.strategies.sequential_unfreezing import SequentialUnfreezing
from tests.pipelines.parts.strategies.harness import train

LAYERS = 3


def table(strategy: Strategy, total: int, per_epoch: int) -> list[str]:
    """At every step, which depths of a body of three layers train: embeddings 0, head 4."""
    groups = [ParameterGroup(depth, LAYERS, [], 1e-3, 0.0) for depth in range(LAYERS + 2)]
    steps = [TrainingProgress(step, total, per_epoch) for step in range(total)]
    return ["".join(str(g.depth) for g in groups if strategy.trains(g, step)) for step in steps]


def test_gradual_unfreezing_adds_a_layer_from_the_top_each_epoch() -> None:
    assert table(GradualUnfreezing(), 12, 2) == [
        *("4", "4", "34", "34", "234", "234", "1234", "1234", "01234", "01234", "01234", "01234")
    ]
    assert table(GradualUnfreezing(every=0.5), 6, 4) == ["4", "4", "34", "34", "234", "234"]
    assert table(GradualUnfreezing(every=2), 5, 1) == ["4", "4", "34", "34", "234"]


def test_chain_thaw_trains_the_new_then_each_layer_from_the_bottom_then_all() -> None:
    assert table(ChainThaw(), 12, 3) == [
        *("4", "4", "0", "0", "1", "1", "2", "2", "3", "3", "01234", "01234"),
    ]
    assert table(ChainThaw(embeddings=False), 5, 5) == ["4", "1", "2", "3", "01234"]
    assert all(table(ChainThaw(), 2, 1)), "too few steps for all phases, but something trains in each"


def test_progressive_transfer_trains_one_layer_after_the_other_and_never_the_head() -> None:
    assert table(ProgressiveTransfer(), 9, 3) == [*("01", "01", "01", "2", "2", "2", "3", "3", "3")]
    assert table(ProgressiveTransfer(), 4, 4) == ["01", "01", "2", "3"]
    for total in range(1, 40):  # the objective has the loss of the layer that trains
        trained = [int(one[-1]) for one in table(ProgressiveTransfer(), total, 1)]
        assert trained == [current_layer(step / total, LAYERS) for step in range(total)]


def test_sequential_unfreezing_begins_all_layers_together_and_the_embeddings_last() -> None:
    assert table(SequentialUnfreezing(layers_after=1, embeddings_after=2), 6, 2) == [
        *("4", "4", "1234", "1234", "01234", "01234")
    ]
    assert table(SequentialUnfreezing(layers_after=0.5, embeddings_after=0.5), 4, 4) == ["4", "4", "01234", "01234"]
    with pytest.raises(ValidationError, match="embeddings_after 1 is before layers_after 2; the embeddings train last"):
        SequentialUnfreezing(layers_after=2, embeddings_after=1)


def depths(moved: set[str]) -> set[int]:
    inside = {f"bert.encoder.layer.{layer}.": layer + 1 for layer in range(2)} | {
        "bert.embeddings.": 0,
        "classifier.": 3,
    }
    return {depth for name in moved for prefix, depth in inside.items() if name.startswith(prefix)}


def test_in_training_only_the_layers_of_the_table_move() -> None:
    gradual = train([Full(), GradualUnfreezing()], steps=4).moved
    assert [depths(moved) for moved in gradual] == [{3}, {2, 3}, {1, 2, 3}, {0, 1, 2, 3}]
    chain = train([ChainThaw()], steps=5).moved
    assert [depths(moved) for moved in chain] == [{3}, {0}, {1}, {2}, {0, 1, 2, 3}]


def test_each_layer_learns_2_6_times_slower_than_the_one_above() -> None:
    groups = [ParameterGroup(depth, LAYERS, [], 0.01, 0.0) for depth in range(LAYERS + 2)]
    rates = [group.lr for group in Discriminative().groups(groups)]
    assert rates[-1] == 0.01, "§3.2: the last layer has the full rate"
    assert [above / below for below, above in pairwise(rates)] == pytest.approx([2.6] * 4, rel=1e-12)
    both = Discriminative(factor=2).groups(Full(head_rate=3).groups(groups))
    assert [group.lr for group in both] == pytest.approx(
        [0.03 if g.is_head else 0.01 / 2 ** (4 - g.depth) for g in groups]
    )


@pytest.mark.parametrize("strategy", [GradualUnfreezing(), ChainThaw()], ids=lambda one: one.name)
def test_what_begins_with_the_head_needs_one(strategy: Strategy) -> None:
    with pytest.raises(RecipeError, match=f"{strategy.name}: .*this head adds no weights"):
        strategy.groups([ParameterGroup(0, 2, [("embedding", nn.Parameter(torch.ones(1)))], 1e-3, 0.0)])
