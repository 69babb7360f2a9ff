"""Which strategies compose, as a table of all pairs, and that those which do really train together."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from pipelines.components import discover
from pipelines.parts.strategies import Decision, Strategy, conflict
from tests.pipelines.parts.strategies.harness import train

TOGETHER = {
    "full": (
        "chain_thaw discriminative gradual_unfreezing l2_to_start partial_transfer progressive_transfer recadam "
        "sequential_unfreezing"
    ),
    "last_layer": "discriminative l2_to_start partial_transfer recadam",
    "adapter": "discriminative partial_transfer",
    "frozen": "partial_transfer",
    "discriminative": (
        "adapter chain_thaw full gradual_unfreezing l2_to_start last_layer partial_transfer progressive_transfer "
        "projected_attention recadam sequential_unfreezing"
    ),
    "chain_thaw": "discriminative full l2_to_start partial_transfer projected_attention recadam",
    "gradual_unfreezing": "discriminative full l2_to_start partial_transfer projected_attention recadam",
    "progressive_transfer": "discriminative full l2_to_start partial_transfer projected_attention recadam",
    "sequential_unfreezing": "discriminative full l2_to_start partial_transfer projected_attention recadam",
    "l2_to_start": (
        "chain_thaw discriminative full gradual_unfreezing last_layer partial_transfer progressive_transfer "
        "projected_attention sequential_unfreezing"
    ),
    "projected_attention": (
        "chain_thaw discriminative gradual_unfreezing l2_to_start partial_transfer progressive_transfer recadam "
        "sequential_unfreezing"
    ),
    "recadam": (
        "chain_thaw discriminative full gradual_unfreezing last_layer partial_transfer progressive_transfer "
        "projected_attention sequential_unfreezing"
    ),
    "partial_transfer": (
        "adapter chain_thaw discriminative frozen full gradual_unfreezing l2_to_start last_layer "
        "progressive_transfer projected_attention recadam sequential_unfreezing state_map"
    ),
    "state_map": "partial_transfer",
}
"""Strategy → those that may stand beside it."""


def made(name: str) -> Strategy:
    return Strategy.model_validate(name)


discover("pipelines.parts.strategies")
PAIRS = list(combinations_with_replacement(sorted(TOGETHER), 2))


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=["+".join(pair) for pair in PAIRS])
def test_a_pair_composes_or_is_refused_as_the_table_says(first: str, second: str) -> None:
    pair = [made(first), made(second)]
    said = conflict(pair)
    assert (said is None) == (second in TOGETHER[first].split())
    assert (conflict(pair[::-1]) is None) == (said is None)
    if said is None:
        assert any(train(pair, steps=5).moved), "it is allowed, so it trains"
    else:
        assert first in said and second in said and said.endswith(("keep one of them", "drop one of them"))


def test_refusals_say_what_both_want() -> None:
    assert conflict([made("gradual_unfreezing"), made("frozen")]) == (
        "gradual_unfreezing decides when each layer trains, which has no effect in combination with frozen; drop one "
        "of them"
    )
    assert conflict([made("full"), made("recadam"), made("l2_to_start")]) == (
        "recadam and l2_to_start both decide what pulls the weights back to their start; keep one of them"
    )
    assert conflict([made("full"), made("discriminative"), made("gradual_unfreezing"), made("recadam")]) is None
    assert conflict([]) is None


def test_the_table_names_every_strategy() -> None:
    assert set(TOGETHER) == set(Strategy.members), "say in the table what a new strategy may stand beside"


@pytest.mark.parametrize("name", sorted(Strategy.members))
def test_a_strategy_decides_what_its_methods_do(name: str) -> None:
    member = Strategy.members[name]
    assert issubclass(member, Strategy)
    assert member.decides and not member.decides & member.precludes
    assert (member.trains is not Strategy.trains) == (Decision.WHEN in member.decides)
    assert (member.optimizer is not Strategy.optimizer) == (Decision.OPTIMIZER in member.decides)
