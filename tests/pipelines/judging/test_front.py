"""Which served forms are worth it, and which one is chosen within limits."""

from __future__ import annotations

import random

import pytest

from pipelines.judging.front import ServedForm, choose, front, not_dominated
from pipelines.judging.limits import Limits


def form(name: str, size: float, milliseconds: float, score: float) -> ServedForm:
    lost = score - 0.8
    return ServedForm(
        name,
        "torch",
        int(size * 1e6),
        milliseconds,
        10 * milliseconds,
        score,
        score,
        score,
        lost,
        lost - 0.03,
        lost + 0.03,
    )


TEACHER = form("teacher", 100, 10, 0.80)
HALF = form("half", 50, 5, 0.79)
TINY = form("tiny", 5, 1, 0.70)
SLOW = form("slow", 4, 20, 0.74)
WORSE = form("worse", 60, 6, 0.75)
FORMS = [TEACHER, HALF, TINY, SLOW, WORSE]


def test_a_form_that_another_beats_everywhere_is_not_on_the_front() -> None:
    assert [one.stage for one in not_dominated(FORMS)] == ["slow", "tiny", "half", "teacher"]
    assert [one.stage for one in front(FORMS, lambda one: one.bytes)] == ["slow", "half", "teacher"]
    assert [one.stage for one in front(FORMS, lambda one: one.milliseconds)] == ["tiny", "half", "teacher"]


def test_two_equal_forms_are_both_on_the_front() -> None:
    twin = form("twin", 50, 5, 0.79)
    assert {HALF, twin} <= set(not_dominated([*FORMS, twin]))


def test_the_front_is_what_comparing_every_pair_says() -> None:
    random.seed(0)
    forms = [form(str(n), random.randint(1, 9), random.randint(1, 9), random.randint(1, 9) / 10) for n in range(200)]
    costs = {one: (one.bytes, one.milliseconds, -one.score) for one in forms}
    expected = {
        one
        for one in forms
        if not any(
            all(a <= b for a, b in zip(costs[other], costs[one], strict=True)) and costs[other] != costs[one]
            for other in forms
        )
    }
    assert set(not_dominated(forms)) == expected


@pytest.mark.parametrize(
    ("limits", "chosen", "missed"),
    [
        ("200 MB", TEACHER, ()),
        ("60 MB, 5 ms", HALF, ()),
        ("60 MB, 4 ms", TINY, ()),
        ("4.5 MB", SLOW, ()),
        ("4.5 MB, 5 ms", TINY, ("size",)),  # a tenth too large is nearer than four times too slow
        ("50 MB, 4 ms, -2 points", HALF, ("time",)),
        ("1 ms, 0 points", TINY, ("score",)),
        ("10 ms, +1 points", TEACHER, ("score",)),
    ],
)
def test_the_best_score_within_limits_or_the_nearest(limits: str, chosen: ServedForm, missed: tuple[str, ...]) -> None:
    choice = choose(FORMS, Limits.parse(limits))
    assert (choice.form, choice.missed, choice.within) == (chosen, missed, not missed)
