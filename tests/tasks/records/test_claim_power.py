"""What a measurement would show is said before it is paid for, from earlier records or from bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipelines.components import discover
from pipelines.judging.certainty.contrasts import WeightedSide, contrast_interval
from pipelines.judging.certainty.significance import minimum_detectable_difference
from pipelines.judging.claims import ClaimForm
from pipelines.judging.figures import RecordedFigure, likelihood_figures, row_mean
from pipelines.recipe.claim import Claim
from tasks.records.claim_power import expected_power, power_text

discover(ClaimForm.__module__)
ACCURACY = RecordedFigure("accuracy", "answers", row_mean, bounds=(-1.0, 1.0))
PERPLEXITY, _ = likelihood_figures("perplexity", "bits_per_byte")


def claim(**keys: Any) -> Claim:
    stated = {"says": "It is.", "published": "table 1", "system": "a", "baseline": "b", "data": "texts"}
    return Claim.model_validate(stated | keys)


def record(variance: dict[str, float], seeds: int = 5, test: int = 400, draws: int = 1) -> dict[str, Any]:
    freedoms = {"item_freedom": test - 1, "seed_freedom": 8, "draw_freedom": 4}
    effect = {"low": -0.1, "high": 0.1, "variance": {"draws": 0.0, **variance, **freedoms}}
    return {
        "metric": "accuracy", "data": {"dataset": "texts", "examples": {"test": test}}, "seeds": seeds,
        "pretraining_draws": draws, "effect": effect,
    }  # fmt: skip


def test_without_records_shares_have_binomial_bounds() -> None:
    power = expected_power(claim(), ACCURACY, 400, 5, 1, [])
    assert power is not None and power.records == 0
    assert power.smallest == pytest.approx(minimum_detectable_difference(400, 5))
    assert expected_power(claim(figure="perplexity"), PERPLEXITY, None, 5, 1, []) is None
    (line,) = power_text(None, claim().form, PERPLEXITY, "table 1")
    assert line.startswith("power     not known: no earlier record of perplexity")


def test_spreads_of_records_are_scaled_to_items_seeds_and_draws() -> None:
    known = [record({"items": 1e-4, "seeds": 4e-5})]
    same, more = (expected_power(claim(), ACCURACY, items, seeds, 1, known) for items, seeds in ((400, 5), (1600, 20)))
    assert same is not None and more is not None and same.records == 1
    # four times as many of both: half of the standard deviation, and t with more degrees of freedom
    assert 0.45 < more.smallest / same.smallest < 0.51
    assert same.smallest == pytest.approx((1.97 + 0.84) * (1.4e-4) ** 0.5, rel=0.05)
    drawn = expected_power(claim(), ACCURACY, 400, 5, 3, known)
    assert drawn is not None and drawn.smallest > same.smallest, "what pre-training draws add is counted"


def test_what_is_said_to_be_shown_is_shown_four_times_in_five() -> None:
    generator = np.random.default_rng(3)
    items, seeds, deviation = 300, 4, 0.01

    def sides(effect: float) -> list[WeightedSide]:
        easy = generator.normal(size=(1, items)) * 0.3
        result = []
        for weight, level in ((-1.0, 0.6), (1.0, 0.6 + effect)):
            of_seeds = level + deviation * generator.normal(size=(seeds, 1))
            values = (
                of_seeds + easy + 0.2 * generator.normal(size=(1, items)) + 0.1 * generator.normal(size=(seeds, items))
            )
            result.append(WeightedSide(weight, row_mean, [row[:, None] for row in values], "test"))
        return result

    before = []
    for _ in range(15):
        found = contrast_interval(sides(0.0), 0, resamples=20).variance
        assert found is not None
        before.append(record({"items": found.items, "seeds": found.seeds}, seeds, items))
    power = expected_power(claim(), ACCURACY, items, seeds, 1, before)
    assert power is not None
    shown = [contrast_interval(sides(power.smallest), 0, resamples=20).low > 0 for _ in range(150)]
    assert 0.68 <= np.mean(shown) <= 0.92


@pytest.mark.parametrize(("published", "text"), [
    (0.079, "published 7.9 points would be shown (table 1)"),
    (0.02, "published 2.0 points is smaller: more seeds or examples, or a sharper form of the claim (table 1)"),
])  # fmt: skip
def test_the_published_effect_stands_beside_it(published: float, text: str) -> None:
    stated = claim(published_effect=published)
    power = expected_power(stated, ACCURACY, 400, 5, 1, [])
    lines = power_text(power, stated.form, ACCURACY, stated.published)
    assert lines == [
        "power     an effect of 6.6 points of accuracy is shown four times in five (binomial bounds)",
        text,
    ]


def test_what_is_shown_counts_from_what_is_required() -> None:
    stated = claim(published_effect=0.07, at_least=0.05)
    power = expected_power(stated, ACCURACY, 400, 5, 1, [])
    assert power is not None and power.required == 0.05 and power.suffices is False
    assert "beyond the required 5.0 points" in power_text(power, stated.form, ACCURACY, "")[0]


def test_old_records_lend_what_they_hold() -> None:
    side = {"accuracy": {"per_seed": [0.60, 0.62, 0.64]}}
    old = {
        "metric": "accuracy", "data": {"dataset": "texts", "examples": {"test": 400}}, "seeds": 3, "system": side,
        "baseline": side, "effect": {"low": -0.04, "high": 0.04},
    }  # fmt: skip
    power = expected_power(claim(), ACCURACY, 400, 3, 1, [old])
    assert power is not None and power.records == 1 and 0.05 < power.smallest < 0.08
    elsewhere = {**old, "data": {"dataset": "other", "examples": {"test": 400}}}
    other = expected_power(claim(), ACCURACY, 400, 3, 1, [elsewhere])
    assert other is not None and other.records == 0
