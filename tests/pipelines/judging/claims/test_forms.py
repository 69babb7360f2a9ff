"""What each form says, in closed form: its contrasts, its verdicts, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.components import discover
from pipelines.errors import DataError
from pipelines.judging.certainty.resampling import paired_difference
from pipelines.judging.certainty.spread import spread_quotient
from pipelines.judging.claims import ClaimForm, ComparedSide, Verdict, read_form
from pipelines.judging.claims.judgement import (
    JudgedContrast,
    MeasuredSide,
    estimate,
    judge,
    verdict_of,
    verdict_of_all,
)
from pipelines.judging.figures import RecordedFigure, likelihood_figures, row_mean

discover(ClaimForm.__module__)
ACCURACY = RecordedFigure("accuracy", "answers", row_mean, bounds=(-1.0, 1.0))
BYTES = RecordedFigure("bytes", "bytes", row_mean, lower=True, unit="bytes", exact=True)
PERPLEXITY, _ = likelihood_figures("perplexity", "bits_per_byte")


def judged(
    form: ClaimForm, figure: RecordedFigure, samples: dict[str, Sequence[np.ndarray]], **items: str
) -> list[JudgedContrast]:
    """The contrasts of `form` on samples by stage, all about the same items but for those in `items`."""

    def measured(side: ComparedSide) -> MeasuredSide:
        key = side.stage if side.stage in samples else f"{side.stage}@{side.judged}"
        return MeasuredSide(samples[key], items.get(side.judged, "test"), figure.score)

    return judge(form, figure, figure.lower, measured, 0)


def answers(generator: np.random.Generator, accuracy: float, seeds: int = 3, size: int = 80) -> list[np.ndarray]:
    return [(generator.random((size, 1)) < accuracy).astype(float) for _ in range(seeds)]


def exact(value: float) -> list[np.ndarray]:
    return [np.asarray([[value]])]


def test_greater_is_the_paired_difference_number_for_number() -> None:
    generator = np.random.default_rng(1)
    samples = {"a": answers(generator, 0.8), "b": answers(generator, 0.6)}
    (one,) = judged(read_form("greater", {"system": "a", "baseline": "b"}), ACCURACY, samples)
    wanted = paired_difference(row_mean, samples["b"], samples["a"], 0)
    assert (one.interval.value, one.interval.low, one.interval.high) == (wanted.difference, wanted.low, wanted.high)
    assert one.verdict == "reproduced"


def test_within_is_greater_less_a_margin() -> None:
    generator = np.random.default_rng(2)
    samples = {"a": answers(generator, 0.7), "b": answers(generator, 0.7)}
    (within,) = judged(read_form("within", {"system": "a", "baseline": "b", "margin": 0.3}), ACCURACY, samples)
    (greater,) = judged(read_form("greater", {"system": "a", "baseline": "b", "at_least": -0.3}), ACCURACY, samples)
    assert within.interval == greater.interval and within.at_least == -0.3 and within.verdict == "reproduced"


@pytest.mark.parametrize(("system", "verdict"), [(250, "reproduced"), (249, "reproduced"), (251, "not reproduced")])
def test_times_is_a_quotient_and_reaching_it_is_enough(system: int, verdict: Verdict) -> None:
    form = read_form("times", {"system": "small", "baseline": "full", "at_least": 4})
    (one,) = judged(form, BYTES, {"small": exact(system), "full": exact(1000)})
    assert one.interval.low == one.interval.high == pytest.approx(1000 / system)
    assert (one.verdict, one.at_least) == (verdict, pytest.approx(4))


def test_a_quotient_over_texts_is_that_of_the_perplexities() -> None:
    generator = np.random.default_rng(3)
    texts = np.stack([generator.uniform(20, 90, 60), np.full(60, 20.0), np.full(60, 90.0)], axis=1)
    better = texts * [0.9, 1, 1]
    form = read_form("times", {"system": "a", "baseline": "b", "at_least": 1.2})
    (one,) = judged(form, PERPLEXITY, {"a": [better], "b": [texts]})
    wanted = math.exp(texts[:, 0].sum() / 1200 - better[:, 0].sum() / 1200)
    assert one.interval.value == pytest.approx(wanted) and one.interval.low < wanted < one.interval.high


def test_every_neighbour_of_an_order_counts() -> None:
    levels = {"three": 0.9, "two": 0.7, "one": 0.5}
    samples = {name: [np.linspace(0, 2 * level, 50)[:, None]] * 3 for name, level in levels.items()}
    form = read_form("in_order", list(levels))
    contrasts = judged(form, ACCURACY, samples)
    assert [one.contrast.label for one in contrasts] == ["three against two", "two against one"]
    assert [one.interval.value for one in contrasts] == [pytest.approx(0.2)] * 2
    assert verdict_of_all([one.verdict for one in contrasts]) == "reproduced"
    (reversed_pair, _) = judged(read_form("in_order", ["two", "three", "one"]), ACCURACY, samples)
    assert reversed_pair.verdict == "not reproduced"
    # simultaneous over two pairs, so wider than alone
    (alone,) = judged(read_form("greater", {"system": "three", "baseline": "two"}), ACCURACY, samples)
    widths = [one.interval.high - one.interval.low for one in (contrasts[0], alone)]
    assert widths[0] / widths[1] == pytest.approx(2.32 / 2.01, rel=0.02), "t with 49 degrees of freedom"


@pytest.mark.parametrize(("at", "scale"), [(None, "linear"), ((1.0, 3.0, 8.0), "linear"), ((1.0, 4.0, 8.0), "log")])
def test_a_trend_is_that_of_least_squares(at: tuple[float, ...] | None, scale: str) -> None:
    generator = np.random.default_rng(4)
    samples = {name: answers(generator, level) for name, level in (("low", 0.4), ("mid", 0.6), ("high", 0.7))}
    options: dict[str, Any] = {"stages": ["low", "mid", "high"], "scale": scale, **({"at": at} if at else {})}
    (one,) = judged(read_form("rises_with", options), ACCURACY, samples)
    positions = np.log2(at) if at and scale == "log" else np.asarray(at or (1, 2, 3))
    means = [np.mean([rows.mean() for rows in samples[name]]) for name in ("low", "mid", "high")]
    assert one.interval.value == pytest.approx(np.polyfit(positions, means, 1)[0])


def test_a_power_law_is_the_slope_of_logarithms() -> None:
    sizes = np.asarray([125.0, 250.0, 1000.0])
    exponent, noise = 0.3, np.asarray([0.02, -0.03, 0.01])
    # texts of 100 tokens and 300 bytes, whose loss falls as size^-0.3, and a little otherwise
    generator = np.random.default_rng(6)
    losses = 5 * sizes**-exponent * np.exp(noise)
    samples = {
        name: [np.stack([100 * loss * generator.uniform(0.9, 1.1, 60), np.full(60, 100), np.full(60, 300)], 1)] * 3
        for name, loss in zip("abc", losses, strict=True)
    }
    bits = likelihood_figures("perplexity", "bits_per_byte")[1]
    options = {"stages": ["a", "b", "c"], "at": sizes.tolist(), "exponent": 0.2}
    (one,) = judged(read_form("power_law", options), bits, samples)
    found = [np.log(np.mean([bits.score(rows) for rows in samples[name]])) for name in "abc"]
    slope = -np.polyfit(np.log(sizes), found, 1)[0]
    assert math.log2(one.interval.value) == pytest.approx(slope) and slope == pytest.approx(exponent, abs=0.05)
    assert one.at_least == pytest.approx(2**0.2) and one.verdict == "reproduced"
    (too_much,) = judged(read_form("power_law", options | {"exponent": 0.5}), bits, samples)
    assert too_much.verdict == "not reproduced"


def test_a_difference_of_differences_adds_the_variances_of_other_items() -> None:
    generator = np.random.default_rng(5)
    form = read_form("gains_more", {"system": ["tuned", "frozen"], "baseline": ["tuned", "frozen"]})
    levels = {"tuned@system": 0.9, "frozen@system": 0.5, "tuned@baseline": 0.7, "frozen@baseline": 0.6}
    samples = {key: answers(generator, level, seeds=1, size=300) for key, level in levels.items()}
    (one,) = judged(form, ACCURACY, samples, system="pairs", baseline="texts")
    mean = {key: rows[0].mean() for key, rows in samples.items()}
    wanted = mean["tuned@system"] - mean["frozen@system"] - mean["tuned@baseline"] + mean["frozen@baseline"]
    assert one.interval.value == pytest.approx(wanted)
    variance = sum(
        (samples[f"tuned@{role}"][0] - samples[f"frozen@{role}"][0]).var(ddof=1) / 300 for role in form.roles
    )
    half = (one.interval.high - one.interval.low) / 2
    assert half == pytest.approx(1.964 * math.sqrt(variance), rel=0.03), "t with about 590 degrees of freedom"


def test_what_is_judged_elsewhere_may_be_trained_here_or_there() -> None:
    form = read_form("transfers", {"system": "a", "baseline": "b"})
    assert form.sides() == (ComparedSide("a", "trained", "judged"), ComparedSide("b", "trained", "judged"))
    form = read_form("transfers", {"system": "a", "baseline": "a", "baseline_trained_on": "judged", "at_least": -0.1})
    assert form.sides()[1] == ComparedSide("a", "judged", "judged")
    with pytest.raises(ValidationError, match="the stage 'a' is given twice"):
        read_form("transfers", {"system": "a", "baseline": "a"})


def test_a_shift_costs_what_training_there_would_have_gained() -> None:
    generator = np.random.default_rng(7)
    form = read_form("falls_with_shift", "tuned")
    assert form.sides() == (ComparedSide("tuned", "judged", "judged"), ComparedSide("tuned", "trained", "judged"))
    samples = {role: answers(generator, level, size=400) for role, level in (("judged", 0.8), ("trained", 0.6))}

    def measured(side: ComparedSide) -> MeasuredSide:
        return MeasuredSide(samples[side.trained], "newer", ACCURACY.score)

    (one,) = judge(form, ACCURACY, ACCURACY.lower, measured, 0)
    wanted = paired_difference(row_mean, samples["trained"], samples["judged"], 0)
    assert (one.interval.value, one.verdict) == (wanted.difference, "reproduced") and 0.1 < wanted.difference < 0.3
    (more,) = judge(read_form("falls_with_shift", {"system": "tuned", "at_least": 0.5}), ACCURACY, ACCURACY.lower,
                    measured, 0)  # fmt: skip
    assert more.verdict == "not reproduced"


def test_a_figure_that_is_a_comparison_itself_exceeds_a_number() -> None:
    falls = RecordedFigure("fall", "falls", row_mean, bounds=(-1.0, 1.0))
    samples = {"a": [np.linspace(-0.1, 0.5, 60)[:, None] + 0.01 * seed for seed in range(3)]}
    (one,) = judged(read_form("exceeds", "a"), falls, samples)
    assert one.interval.value == pytest.approx(0.21) and one.verdict == "reproduced" and one.at_least == 0
    mean = estimate(falls, MeasuredSide(samples["a"], "", row_mean), 0)
    assert (one.interval.low, one.interval.high) == (pytest.approx(mean.low), pytest.approx(mean.high))
    (more,) = judged(read_form("exceeds", {"system": "a", "at_least": 0.5}), falls, samples)
    assert more.verdict == "not reproduced"
    (unsure,) = judged(read_form("exceeds", {"system": "a", "at_least": 0.2}), falls, samples)
    assert unsure.verdict == "cannot tell at this scale"


@pytest.mark.parametrize(
    ("low", "high", "at_least", "verdict"),
    [
        (0.01, 0.05, 0.0, "reproduced"),
        (-0.01, 0.05, 0.0, "cannot tell at this scale"),
        (-0.05, -0.01, 0.0, "not reproduced"),
        (-0.008, 0.02, -0.01, "reproduced"),
        (-0.03, -0.008, -0.01, "cannot tell at this scale"),
        (-0.03, -0.011, -0.01, "not reproduced"),
    ],
)
def test_a_verdict_needs_the_whole_interval(low: float, high: float, at_least: float, verdict: Verdict) -> None:
    assert verdict_of(low, high, at_least) == verdict


def test_steadier_compares_the_standard_deviations_of_seeds() -> None:
    spread = np.asarray([-2.0, -1.0, 0.0, 1.0, 2.0, -1.5, 1.5, 0.5])
    # a mean far lower, which is not what is compared
    samples = {
        "steady": [np.full((10, 1), 0.3 + 0.01 * one) for one in spread],
        "loose": [np.full((10, 1), 0.7 + 0.04 * one) for one in spread],
    }
    (one,) = judged(read_form("steadier", {"system": "steady", "baseline": "loose"}), ACCURACY, samples)
    assert one.interval.value == pytest.approx(4) and one.at_least == 1 and one.verdict == "reproduced"
    # F with 7 and 7 degrees of freedom has its upper 2.5 % above 4.995 (Snedecor & Cochran 1989, table A 14)
    assert one.interval.low == pytest.approx(4 / math.sqrt(4.995), rel=1e-3)
    assert one.interval.high == pytest.approx(4 * math.sqrt(4.995), rel=1e-3)
    (other,) = judged(read_form("steadier", {"system": "loose", "baseline": "steady"}), ACCURACY, samples)
    assert other.interval.value == pytest.approx(1 / 4) and other.verdict == "not reproduced"
    (unsure,) = judged(
        read_form("steadier", {"system": "steady", "baseline": "loose", "at_least": 3}), ACCURACY, samples
    )
    assert unsure.verdict == "cannot tell at this scale"
    # of a figure of which less is better, less spread is better all the same
    levels = {name: [np.tile([[120.0, 20, 90]], (5, 1)) * [1 + rows[0, 0], 1, 1] for rows in models]
              for name, models in samples.items()}  # fmt: skip
    (less,) = judged(read_form("steadier", {"system": "steady", "baseline": "loose"}), PERPLEXITY, levels)
    assert less.interval.value > 1


def test_an_interval_of_spread_covers_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    draws = generator.normal(size=(2, 2000, 6)) * np.asarray([3.0, 1.0])[:, None, None]
    found = [spread_quotient(*pair) for pair in draws.transpose(1, 0, 2)]
    assert np.mean([one.low < math.log(3) < one.high for one in found]) == pytest.approx(0.95, abs=0.015)


def test_equal_bytes_are_not_fewer() -> None:
    samples = {"a": exact(1000), "b": exact(1000)}
    (one,) = judged(read_form("greater", {"system": "a", "baseline": "b"}), BYTES, samples)
    assert one.verdict == "not reproduced"
    assert estimate(BYTES, MeasuredSide(samples["a"], "", row_mean), 0).mean == 1000


def test_a_claim_holds_where_all_of_it_does() -> None:
    unsure: Verdict = "cannot tell at this scale"
    assert verdict_of_all(["reproduced", unsure]) == unsure
    assert verdict_of_all(["reproduced", unsure, "not reproduced"]) == "not reproduced"


def test_what_cannot_be_compared_is_refused() -> None:
    form = read_form("times", {"system": "a", "baseline": "b", "at_least": 2})
    with pytest.raises(DataError, match="bytes of b is not above zero, so it has no quotient"):
        judged(form, BYTES, {"a": exact(1), "b": exact(0)})
    same = {"a": [np.ones((3, 1))] * 3, "b": [np.ones((3, 1))] * 3}
    with pytest.raises(DataError, match="3 seeds with the figures 1, 1, 1 have no spread to compare"):
        judged(read_form("steadier", {"system": "a", "baseline": "b"}), ACCURACY, same)
    uneven = {"a": [np.ones((3, 1))], "b": [np.ones((4, 1))]}
    with pytest.raises(DataError, match="accuracy was measured on 3 and 4 items"):
        judged(read_form("greater", {"system": "a", "baseline": "b"}), ACCURACY, uneven)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("in_order", ["one"], "a comparison needs at least 2 stages, got one"),
        ("in_order", ["one", "two", "one"], "the stage 'one' is given twice"),
        ("rises_with", ["one", "two"], "needs at least 3 stages"),
        ("rises_with", {"stages": ["a", "b", "c"], "at": [1, 3]}, "`at` has 2 numbers for 3 stages"),
        ("rises_with", {"stages": ["a", "b", "c"], "at": [1, 3, 2]}, "`at` must rise"),
        ("rises_with", {"stages": ["a", "b", "c"], "at": [0, 1, 2], "scale": "log"}, "numbers above zero"),
        ("rises_with", {"stages": ["a", "b", "c"], "scale": "log"}, "scale log needs `at`"),
        ("power_law", {"stages": ["a", "b"], "at": [1, 2]}, "needs at least 3 stages"),
        ("power_law", {"stages": ["a", "b", "c"], "at": [0, 1, 2]}, "`at` must be above zero"),
        ("power_law", ["a", "b", "c"], "power_law is a mapping"),
        ("greater", {"system": "a", "baseline": "a"}, "the stage 'a' is given twice"),
        ("times", {"system": "a", "baseline": "b"}, "Field required"),
        ("times", ["a", "b"], "times is a mapping with the keys system, baseline, at_least"),
        ("within", {"system": "a", "baseline": "b", "margin": 0}, "greater than 0"),
        ("gains_more", {"system": ["a", "b"], "baseline": ["c"]}, "baseline"),
    ],
)
def test_a_form_that_cannot_hold_is_refused(name: str, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_form(name, value)
