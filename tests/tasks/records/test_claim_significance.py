"""Verdicts of many claims are corrected for their number, over the page that shows them."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.judging.claims.judgement import verdict_of
from tasks.records.claim_significance import adjusted_p_values, adjusted_text, p_values


def pair(low: float, high: float, at_least: float = 0.0, **changes: Any) -> dict[str, Any]:
    effect = {"difference": (low + high) / 2, "low": low, "high": high}
    return {"effect": effect, "at_least": at_least, "verdict": verdict_of(low, high, at_least)} | changes


@pytest.mark.parametrize(("low", "high", "at_least"), [
    (0.001, 0.05, 0.0), (-0.001, 0.05, 0.0), (-0.05, -0.001, 0.0), (-0.05, 0.001, 0.0), (-0.009, 0.02, -0.01),
    (-0.011, 0.02, -0.01), (-0.04, -0.0101, -0.01), (0.02, 0.06, 0.03),
])  # fmt: skip
def test_a_p_value_is_below_five_per_cent_where_the_interval_excludes_what_is_required(
    low: float, high: float, at_least: float
) -> None:
    record = pair(low, high, at_least)
    (value,) = p_values([record])
    assert value is not None and (value < 0.05) == (record["verdict"] != "cannot tell at this scale")


def test_ends_at_what_is_required_are_five_per_cent() -> None:
    (value,) = p_values([pair(0.0, 0.2)])
    assert value == pytest.approx(0.05)
    several = {
        "contrasts": [{"effect": 0.1, "low": 0.0, "high": 0.2, "at_least": 0.0}] * 3,
        "verdict": "cannot tell at this scale",
    }
    (value,) = p_values([several])
    assert value == pytest.approx(0.05), "of three simultaneous intervals"
    quotient = {"contrasts": [{"effect": 4.0, "low": 2.0, "high": 8.0, "at_least": 2.0}], "ratio": True,
                "verdict": "cannot tell at this scale"}  # fmt: skip
    (value,) = p_values([quotient])
    assert value == pytest.approx(0.05)


def test_an_order_fails_by_its_worst_pair_and_holds_by_its_weakest() -> None:
    sure, weak, reversed_pair = (
        {"effect": e, "low": e - 0.05, "high": e + 0.05, "at_least": 0.0} for e in (0.2, 0.052, -0.2)
    )
    holds, fails = p_values([
        {"contrasts": [sure, weak], "verdict": "reproduced"},
        {"contrasts": [weak, reversed_pair], "verdict": "not reproduced"},
    ])  # fmt: skip
    assert holds is not None and fails is not None and fails < 1e-6 < 0.02 < holds < 0.05


def test_among_many_a_narrow_verdict_is_not_certain() -> None:
    narrow, clear, undecided = pair(0.001, 0.05), pair(0.1, 0.12), pair(-0.02, 0.03)
    alone, together = adjusted_p_values([narrow]), adjusted_p_values([narrow, clear, *[undecided] * 5])
    assert alone[0] is not None and together[0] is not None and together[0] == pytest.approx(6 * alone[0])
    assert adjusted_text(narrow, alone[0]) == f"{alone[0]:.3f}"
    assert adjusted_text(narrow, together[0]).endswith(": cannot tell at this scale")
    assert adjusted_text(clear, together[1]) == "< 0.001"


def test_what_is_no_test_is_not_in_the_family() -> None:
    records = [pair(0.001, 0.05), pair(0.1, 0.2, verdict="too near chance"), pair(0.1, 0.2, exact=True)]
    values = adjusted_p_values(records)
    assert values[1:] == [None, None] and values[:1] == adjusted_p_values(records[:1])
    assert adjusted_text(records[1], None) == ""
