"""Many comparisons at once: what stands alone may not stand among others."""

from __future__ import annotations

import pytest

from pipelines.judging.certainty.significance import holm_corrected
from pipelines.judging.certainty.statistics import Difference
from pipelines.judging.probes.records import rounded


def test_one_comparison_stands_where_its_interval_excludes_zero() -> None:
    for low, high, verdict in ((0.001, 0.05, "better"), (-0.001, 0.05, "cannot tell"), (-0.2, -0.01, "worse")):
        (found,) = holm_corrected([Difference((low + high) / 2, low, high)])
        assert found["verdict"] == verdict and (found["p"] < 0.05) == (verdict != "cannot tell")
        assert (found["low"], found["high"]) == (low, high)


def test_among_many_only_what_is_clear_stands() -> None:
    marginal, clear = Difference(0.02, 0.001, 0.04), Difference(0.2, 0.15, 0.25)
    none = [Difference(0.0, -0.02, 0.02)] * 10
    verdicts = [one["verdict"] for one in holm_corrected([marginal, clear, *none])]
    assert verdicts == ["cannot tell", "better", *["cannot tell"] * 10]
    assert holm_corrected([]) == [] and holm_corrected([Difference(0.0, 0.0, 0.0)])[0]["verdict"] == "cannot tell"


def test_records_are_cut_to_what_they_can_say() -> None:
    assert rounded({"a": [0.123456789, {"b": (1, 2.00000049)}], "c": "x"}) == {
        "a": [0.123457, {"b": [1, 2.0]}],
        "c": "x",
    }
    assert rounded(True) is True and rounded(None) is None


@pytest.mark.parametrize("value", [0, 7])
def test_whole_numbers_stay_whole(value: int) -> None:
    assert rounded(value) == value and isinstance(rounded(value), int)
