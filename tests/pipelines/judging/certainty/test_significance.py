"""Tests and sizes: against their definitions, and against what they promise when they are simulated."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from pipelines.errors import DataError
from pipelines.judging.certainty.significance import (
    holm,
    mcnemar,
    minimum_detectable_difference,
    randomisation,
    required_sample_sizes,
)
from pipelines.judging.certainty.variance_components import ContrastVariance, contrast_variance


def share(statistics: np.ndarray) -> float:
    return float(statistics[:, 0].mean())


def test_mcnemar_counts_only_where_the_two_differ() -> None:
    first = np.asarray([True] * 50 + [False] * 30 + [True] * 12 + [False] * 3)
    second = np.asarray([True] * 50 + [False] * 30 + [False] * 12 + [True] * 3)
    binomial = 2 * sum(comb(15, right) for right in range(4)) / 2**15
    assert mcnemar(first, second) == pytest.approx(binomial)
    assert mcnemar(first, first) == 1.0
    with pytest.raises(DataError, match="answered 95 test items, the other 94"):
        mcnemar(first, second[:-1])


def test_randomisation_agrees_with_mcnemar_where_both_apply() -> None:
    first = np.repeat([1.0, 0.0, 1.0, 0.0], [50, 30, 12, 3])[:, None]
    second = np.repeat([1.0, 0.0, 0.0, 1.0], [50, 30, 12, 3])[:, None]
    exact = mcnemar(first[:, 0] > 0, second[:, 0] > 0)
    assert randomisation(share, [first], [second], seed=0, rounds=4000) == pytest.approx(exact, abs=0.01)


def test_randomisation_is_right_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    found = []
    for trial in range(200):
        ease = generator.random(150)
        first, second = (
            [(generator.random((150, 1)) < ease[:, None]).astype(float) for _ in range(2)] for _ in range(2)
        )
        found.append(randomisation(share, first, second, seed=trial, rounds=200))
    assert np.mean(np.asarray(found) <= 0.05) <= 0.05 + 3 * (0.05 * 0.95 / 200) ** 0.5
    assert np.mean(np.asarray(found) <= 0.5) >= 0.3, (
        "many resamples tie with what was observed, which counts against it"
    )


def test_randomisation_asks_for_as_many_seeds_and_the_same_items() -> None:
    one, longer = np.zeros((4, 1)), np.zeros((5, 1))
    with pytest.raises(DataError, match="1 seeds, the other 2"):
        randomisation(share, [one], [one, one], seed=0)
    with pytest.raises(DataError, match="the same items"):
        randomisation(share, [one], [longer], seed=0)


def test_holm_is_the_procedure_of_its_paper() -> None:
    values = [0.01, 0.04, 0.03, 0.005]
    expected, largest = {}, 0.0
    for rank, value in enumerate(sorted(values)):
        largest = max(largest, min(1.0, (len(values) - rank) * value))
        expected[value] = largest
    assert holm(values) == pytest.approx([expected[value] for value in values])
    assert holm([]) == []


def test_what_is_said_to_be_detectable_is_detected_four_times_in_five() -> None:
    generator = np.random.default_rng(0)
    items, seeds, disagreement, deviation = 400, 5, 0.2, 0.01
    effect = minimum_detectable_difference(items, seeds, disagreement, deviation)
    seen = 0
    for _ in range(300):
        # items that only one of the two can answer, in the shares that give the effect
        kind = generator.choice(
            3, items, p=[(disagreement - effect) / 2, (disagreement + effect) / 2, 1 - disagreement]
        )
        noise = deviation * generator.standard_normal((2, seeds, 1))
        first = (kind == 0) + (kind == 2) * 0.6 + noise[0]
        second = (kind == 1) + (kind == 2) * 0.6 + noise[1]
        found = contrast_variance([(-1.0, first), (1.0, second)])
        seen += second.mean() - first.mean() - found.half_width > 0
    assert 0.72 <= seen / 300 <= 0.88


def test_more_items_or_more_seeds_show_less() -> None:
    assert (
        minimum_detectable_difference(1600, 3)
        < minimum_detectable_difference(400, 3)
        < minimum_detectable_difference(100, 3)
    )
    assert minimum_detectable_difference(400, 10) < minimum_detectable_difference(400, 3)
    assert minimum_detectable_difference(139, 1) > 0.1, "139 test texts swallow any published gain"


def test_settling_names_the_least_number_that_would_do() -> None:
    found = ContrastVariance(items=0.0001, item_freedom=399, seeds=0.0004, seed_freedom=8)
    answer = required_sample_sizes(0.03, found, seeds=5, items=400)
    assert answer.items is None, "however many items, the seeds alone vary more than that"
    assert answer.seeds is not None and answer.seeds > 5

    def width(seeds: int) -> float:
        return ContrastVariance(0.0001, 399, 0.0004 * 5 / seeds, 8 * (seeds - 1) / 4).half_width

    assert width(answer.seeds) < 0.03 <= width(answer.seeds - 1)
    among_three = required_sample_sizes(0.03, found, seeds=5, items=400, comparisons=3)
    assert among_three.seeds is not None and among_three.seeds > answer.seeds, "Holm asks more of the first of three"
    assert (
        ContrastVariance(0.0001, 399, 0.0004 * 5 / among_three.seeds, 8 * (among_three.seeds - 1) / 4).p_value(0.03)
        < 0.05 / 3
    )
    few = required_sample_sizes(0.01, ContrastVariance(0.0001, 399, 0.0, 1), seeds=1, items=400)
    assert few.seeds is None and few.items is not None and 1500 <= few.items <= 1600
