"""Schedules against the library's own, and against the papers' equations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.parts.schedules import Schedule, WarmupSchedule
from tests.contracts.families import build, members

TOTAL, RISE = 50, 10
EVERY = [build(member) for member in members("schedules").values()]
LIBRARY: dict[str, tuple[dict[str, Any], Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LambdaLR]]] = {
    "linear": ({}, lambda o: transformers.get_linear_schedule_with_warmup(o, RISE, TOTAL)),
    "constant": ({}, lambda o: transformers.get_constant_schedule_with_warmup(o, RISE)),
    "cosine": ({}, lambda o: transformers.get_cosine_schedule_with_warmup(o, RISE, TOTAL)),
    "polynomial": (
        {"power": 0.9, "end": 0.25},
        lambda o: transformers.get_polynomial_decay_schedule_with_warmup(o, RISE, TOTAL, lr_end=0.25, power=0.9),
    ),
}


def values(part: Schedule, total: int) -> list[float]:
    return [part.factor(step, total) for step in range(total)]


@pytest.mark.parametrize("name", LIBRARY)
def test_the_rates_are_the_librarys(name: str) -> None:
    options, make = LIBRARY[name]
    factor = make(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)).lr_lambdas[0]
    ours = values(Schedule.model_validate({"name": name, "warmup": RISE / TOTAL, **options}), TOTAL)
    # the library spends its first step at rate 0, so that its rise is one step later
    expected = [factor(step + 1) for step in range(RISE)] + [factor(step) for step in range(RISE, TOTAL)]
    assert ours == pytest.approx(expected, abs=1e-12)
    assert any(value < 1 for value in ours) and max(ours) == 1


def test_inverse_square_root_is_the_librarys_one_step_later() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    factor = transformers.get_inverse_sqrt_schedule(optimizer, RISE, timescale=RISE).lr_lambdas[0]
    part = Schedule.model_validate({"name": "inverse_sqrt", "warmup": RISE / TOTAL})
    assert values(part, TOTAL) == pytest.approx([factor(done) for done in range(1, TOTAL + 1)], abs=1e-12)
    # Raffel et al. 2020, §3.1.2: 1 / √max(n, k), as a multiple of its highest value
    flat = Schedule.model_validate({"name": "inverse_sqrt", "warmup": RISE / TOTAL, "flat": True})
    expected = [math.sqrt(RISE) / math.sqrt(max(done, RISE)) for done in range(1, TOTAL + 1)]
    assert values(flat, TOTAL) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("total", [10, 50, 1000])
def test_slanted_triangular_is_equation_3(total: int) -> None:
    def equation(t: int, cut_frac: float = 0.1, ratio: float = 32, highest: float = 0.01) -> float:
        cut = math.floor(total * cut_frac)
        p = t / cut if t < cut else 1 - (t - cut) / (cut * (1 / cut_frac - 1))
        return highest * (1 + p * (ratio - 1)) / ratio

    ours = values(Schedule.model_validate("slanted_triangular"), total)
    assert [0.01 * factor for factor in ours] == pytest.approx([equation(t) for t in range(total)], abs=1e-12)
    assert ours[0] == 1 / 32 and ours.index(1) == total // 10


@given(total=st.integers(1, 3000), warmup=st.floats(0, 0.99), data=st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_the_usual_schedule_is_what_training_used_before_there_were_others(
    total: int, warmup: float, data: st.DataObject
) -> None:
    step, rise = data.draw(st.integers(0, total)), round(warmup * total)
    before = (step + 1) / rise if step < rise else max(0.0, (total - step) / max(1, total - rise))
    usual = Schedule.default().model_copy(update={"warmup": warmup})
    assert isinstance(usual, WarmupSchedule) and usual.factor(step, total) == before
    assert Schedule.default() == Schedule.model_validate({"name": "linear", "warmup": 0.1})


@pytest.mark.parametrize("part", EVERY, ids=lambda part: part.name)
@given(total=st.integers(1, 5000), data=st.data())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_a_schedule_stays_between_zero_and_one(part: Schedule, total: int, data: st.DataObject) -> None:
    # torch asks once more after the last step
    assert 0 <= part.factor(data.draw(st.integers(0, total)), total) <= 1
    assert part.factor(0, total) > 0, "the first step is not lost"
