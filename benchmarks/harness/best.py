"""A peer at its best: the same loop in several ways, in the environment that a launcher sets. The fastest one counts,
whichever that is on the day and the processor of a measurement."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Any

from benchmarks.harness.benchmark import Setting
from benchmarks.harness.paced import as_it_comes
from benchmarks.harness.record import Figure, Turn
from benchmarks.harness.turns import Turns, ratio
from tasks.launchers.environment import training_environment

AT_ITS_BEST = "at its best in our environment"
TRAINER_WAYS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "SDPA": {"attention": "sdpa"},
        "compiled, SDPA": {"attention": "sdpa", "arguments": {"torch_compile": True}},
        "compiled, eager attention": {"attention": "eager", "arguments": {"torch_compile": True}},
    }
)
"""Way → settings of `benchmarks.peers.trainer` for networks that take both kinds of attention."""


def in_our_environment(setting: Setting) -> dict[str, str]:
    """The environment of the peers' users with what a launcher sets for a stage: huge pages, a kept heap, and the
    policy of OpenMP."""
    return as_it_comes(setting) | training_environment()


def way(peer: str, name: str) -> str:
    """The variant that is a peer run in one way."""
    return f"{peer}, {name}"


def fastest(turns: Turns, variants: Collection[str]) -> str | None:
    """The variant with the highest median rate; None where none of them ran."""
    rates = {one: median(turn.units / turn.seconds for turn in turns[one]) for one in variants if one in turns}
    return max(rates, key=lambda one: rates[one]) if rates else None


def against_best(prefix: str, ours: Sequence[Turn], turns: Turns, peer: str, ways: Collection[str]) -> list[Figure]:
    """The ratio to the fastest of the `ways` of a peer, which the figure names; none where no way ran."""
    best = fastest(turns, [way(peer, name) for name in ways])
    if best is None:
        return []
    return [ratio(f"{prefix}against {peer} {AT_ITS_BEST}", ours, turns[best], best)]
