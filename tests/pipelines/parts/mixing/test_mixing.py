"""The order in which the lines of a stage are trained."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.parts.mixing import Mixing, allotted

LINES, SIZES = ("cola", "stsb", "rte"), (40, 20, 5)


def order(mixing: object, steps: int, seed: int = 0) -> list[int]:
    return Mixing.model_validate(mixing).order(LINES, SIZES, steps, seed).tolist()


def counts(line_of_step: list[int]) -> list[int]:
    return np.bincount(line_of_step, minlength=len(LINES)).tolist()


@pytest.mark.parametrize("mixing", ["proportional", "annealed", "round_robin", "alternating", "continual"])
@pytest.mark.parametrize("steps", [1, 7, 65, 200])
def test_every_step_has_a_line_and_the_order_is_a_function_of_the_seed(mixing: str, steps: int) -> None:
    first = order(mixing, steps)
    assert len(first) == steps and set(first) <= {0, 1, 2}
    assert order(mixing, steps) == first


def test_an_epoch_in_proportion_reads_every_line_once() -> None:
    two = order("proportional", 130)
    assert counts(two[:65]) == counts(two[65:]) == list(SIZES)
    assert two[:65] != two[65:] and order("proportional", 130, seed=1) != two


def test_an_exponent_moves_steps_to_the_small_lines() -> None:
    weights = np.sqrt(SIZES)
    expected = 65 * weights / weights.sum()
    drawn = counts(order({"name": "proportional", "exponent": 0.5}, 65))
    assert np.abs(np.asarray(drawn) - expected).max() < 1 and sum(drawn) == 65
    assert max(np.abs(np.asarray(counts(order({"name": "proportional", "exponent": 0}, 65))) - 65 / 3)) < 1


def test_annealing_ends_nearly_equal() -> None:
    epochs = np.reshape(order("annealed", 65 * 3), (3, 65))
    assert counts(epochs[0].tolist()) == list(SIZES)
    smallest = [counts(epoch.tolist())[2] for epoch in epochs]
    # α = 0.2 in the last epoch: 65 · 5^0.2 / (40^0.2 + 20^0.2 + 5^0.2)
    assert smallest == sorted(smallest) and smallest[-1] == round(65 * 5**0.2 / (40**0.2 + 20**0.2 + 5**0.2))


def test_a_line_that_is_read_leaves_the_round() -> None:
    epoch = order("round_robin", 65)
    assert epoch[:15] == [0, 1, 2] * 5 and epoch[15:45] == [0, 1] * 15 and epoch[45:] == [0] * 20


def test_a_pattern_is_repeated() -> None:
    assert order({"name": "alternating", "pattern": ["cola", "cola", "rte", "stsb"]}, 6) == [0, 0, 2, 1, 0, 0]
    assert order("alternating", 4) == [0, 1, 2, 0]


def test_lines_join_one_after_the_other_and_have_equally_many_steps() -> None:
    steps = order("continual", 90)
    assert counts(steps) == [30, 30, 30]
    assert counts(steps[:10]) == [10, 0, 0] and counts(steps[10:35]) == [10, 15, 0]
    assert counts(steps[35:]) == [10, 15, 30]


def test_rounding_by_largest_remainders_loses_no_step() -> None:
    for steps in range(30):
        shares = allotted(steps, np.asarray([1.0, 2.0, 3.5]))
        assert shares.sum() == steps and np.abs(shares - steps * np.asarray([1, 2, 3.5]) / 6.5).max() < 1


@pytest.mark.parametrize(
    ("mixing", "in_epochs", "says"),
    [
        ({"name": "alternating", "pattern": ["cola", "stbs", "rte"]}, True, "Did you mean 'stsb'"),
        ({"name": "alternating", "pattern": ["cola", "stsb"]}, True, "never trains rte"),
        ("annealed", False, "the budget counts tokens"),
        ("round_robin", False, "the budget counts tokens"),
    ],
)
def test_a_mixing_that_contradicts_lines_or_budget_says_why(mixing: object, in_epochs: bool, says: str) -> None:
    conflict = Mixing.model_validate(mixing).conflict(LINES, in_epochs=in_epochs)
    assert conflict is not None and says in conflict
