"""What the benchmark of `cursus compress` makes of measured forms: chosen on validation, shown on the test table."""

from __future__ import annotations

import pytest

from benchmarks.compression import BYTES, OF_THE_TEACHER, TIME, WORST, least
from benchmarks.harness.reached import Front, plots
from benchmarks.harness.record import Figure
from pipelines.judging.front import ServedForm


def form(stage: str, megabytes: float, milliseconds: float, score: float, runtime: str = "torch_fp32") -> ServedForm:
    change = score - 0.9
    return ServedForm(
        stage, runtime, int(megabytes * 1e6), milliseconds, 20 * milliseconds, score, score - 0.03, score + 0.03,
        change, change - 0.02, change + 0.02,
    )  # fmt: skip


TEACHER = form("teacher", 90, 9.4, 0.9)
SMALL = form("small", 9, 2, 0.85)
SMALL_QUICK = form("small", 10, 0.9, 0.84, "onnxruntime_int8")
TINY = form("tiny", 1, 0.5, 0.89)
"""Best on the test table and worse on validation than what the goal requires."""
FINE = form("fine", 8, 1.0, 0.6)
VALIDATION = {"teacher": 0.8, "small": 0.79, "tiny": 0.7, "fine": 0.778}


def front(*forms: ServedForm) -> Front:
    return Front((TEACHER, *forms), VALIDATION, "accuracy")


def test_forms_are_chosen_by_validation_and_shown_by_test_scores() -> None:
    measured = front(SMALL, SMALL_QUICK, TINY, FINE)
    assert measured.keeping == [SMALL, SMALL_QUICK, FINE], "97 % of 0.8 is 0.776"
    assert measured.smallest == FINE and measured.fastest == SMALL_QUICK
    # ten times smaller and 9.4 times faster: not SMALL_QUICK, of 10 MB
    assert measured.at_the_goal == FINE
    share = measured.kept("kept", FINE)
    assert (share.value, share.low, share.high) == pytest.approx((0.6 / 0.9, 0.58 / 0.9, 0.62 / 0.9))
    assert share.unit == "", "a share is no ratio of speeds"


def test_what_is_saved_is_relative_to_the_teacher() -> None:
    measured = front(SMALL)
    assert measured.smaller(SMALL) == pytest.approx(10) and measured.faster(SMALL) == pytest.approx(4.7)
    assert measured.at_the_goal is None, "small, and not fast enough"


def test_a_teacher_is_no_form_of_its_own_front() -> None:
    other = form("teacher", 23, 2, 0.9, "onnxruntime_int8")
    measured = front(other)
    assert measured.keeping == [other] and measured.smallest == other, "the teacher in another runtime is a form"
    assert front().smallest is None and front().fastest is None


def test_every_form_is_a_line_and_the_front_is_marked() -> None:
    lines = front(SMALL, TINY, FINE).lines("topics")
    assert len(lines) == 4 and [line.split(":")[1] for line in lines if "(front)" in line] == [
        " tiny · torch_fp32 (front)",
        " teacher · torch_fp32 (front)",
    ]
    assert "1.00 MB, 0.50 ms, 10.0 ms of 32, accuracy 0.890 (0.860 to 0.920), -0.010 (-0.030 to +0.010)" in lines[0]


def test_plots_are_the_forms_that_beat_all_cheaper_ones() -> None:
    size, time = plots({"topics": front(SMALL, TINY, FINE)})
    assert (size.name, time.name) == ("size", "time")
    assert [point.x for point in size.series[0].points] == [1, 90]
    assert [point.y for point in size.series[0].points] == pytest.approx([0.89 / 0.9, 1])


def test_the_least_of_the_tasks_counts_and_a_missing_form_is_nothing_kept() -> None:
    figures = [
        Figure(name=f"a: {OF_THE_TEACHER}", value=0.99, unit=""),
        Figure(name=f"b: {OF_THE_TEACHER}", value=0.95, low=0.9, high=0.99, unit=""),
        Figure(name=f"a: {BYTES}", value=12),
        Figure(name=f"b: {BYTES}", value=11),
        Figure(name=f"a: {TIME}", value=20),
    ]
    fronts = dict.fromkeys(("a", "b"), front())
    kept, smaller, faster = least(figures, fronts)
    assert (kept.name, kept.value, kept.low) == (f"{OF_THE_TEACHER}, {WORST}", 0.95, 0.9)
    assert smaller.value == 11 and faster.value == 0, "b has no form that is fast enough"
    assert least([], {}) == []
