"""What a time budget holds."""

from __future__ import annotations

import pytest

from pipelines.errors import CursusError
from pipelines.recipe.routes import Route
from tasks.compression.selection import RouteCost, seconds_of, select


def route(name: str, start: str = "teacher") -> Route:
    return Route(name, "", "", {name: {"start": start}})


def costs(**seconds: float) -> list[RouteCost]:
    """`half_bits` continues `half`; the others continue the teacher."""
    return [
        RouteCost(route(name, "half" if name == "half_bits" else "teacher"), one, 1) for name, one in seconds.items()
    ]


def test_without_a_budget_everything_is_taken() -> None:
    chosen = select(costs(half=60, bits=1, half_bits=2), 10, None)
    assert {one.name for one in chosen.routes} == {"half", "bits", "half_bits"}
    assert chosen.seconds == 73 and not chosen.left_out


def test_the_quickest_come_first_and_what_is_too_long_is_named_with_its_time() -> None:
    chosen = select(costs(half=60, bits=1, narrow=30), 10, 45)
    assert [one.name for one in chosen.routes] == ["bits", "narrow"]
    assert chosen.left_out == {"half": 60} and chosen.seconds == 41


def test_a_route_costs_what_it_continues_as_long_as_that_is_not_taken() -> None:
    chosen = select(costs(half_bits=2, half=60, bits=1), 0, 50)
    assert [one.name for one in chosen.routes] == ["bits"]
    assert chosen.left_out == {"half_bits": 62, "half": 60}
    both = select(costs(half_bits=2, half=60), 0, 62)
    assert [one.name for one in both.routes] == ["half", "half_bits"], "parents come first"


def test_a_budget_that_holds_nothing_says_what_the_quickest_takes() -> None:
    with pytest.raises(CursusError, match="5 seconds hold no route; the quickest, bits, takes about 11"):
        select(costs(half=60, bits=1), 10, 5)


@pytest.mark.parametrize(
    ("text", "seconds"), [("20m", 1200), ("90s", 90), ("1h30m", 5400), ("1.5 h", 5400), ("2min", 120)]
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["20", "", "0m", "m", "-5m", "soon"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(CursusError, match="for example 20m"):
        seconds_of(text)
