"""The verdict's truth table, over every combination of outcomes."""

from __future__ import annotations

from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.judging.gate import CriterionOutcome, OutcomeKind, decisive
from pipelines.judging.gate.verdict import sentence, verdict

ANSWERS = get_args(OutcomeKind)
outcomes = st.lists(
    st.builds(
        CriterionOutcome, criterion=st.sampled_from("abc"), outcome=st.sampled_from(ANSWERS), reason=st.just("because.")
    )
)


@settings(deadline=None, derandomize=True)
@given(outcomes)
def test_the_truth_table(found: list[CriterionOutcome]) -> None:
    said = {one.outcome for one in found}
    expected = "NO-GO" if "missed" in said else "INCONCLUSIVE" if "undecided" in said or not said & {"met"} else "GO"
    assert verdict(found) == expected
    assert verdict(found[::-1]) == expected, "the order of criteria decides nothing"
    told = sentence(verdict(found), found)
    assert told.startswith(expected)
    wanted = {"NO-GO": "missed", "INCONCLUSIVE": "undecided", "GO": "met"}[expected]
    assert told.count(f"{wanted}: because") == sum(one.outcome == wanted for one in found)


@settings(deadline=None, derandomize=True)
@given(outcomes, outcomes)
def test_a_criterion_that_is_not_asked_changes_nothing_and_a_missed_one_everything(
    found: list[CriterionOutcome], more: list[CriterionOutcome]
) -> None:
    silent = CriterionOutcome(criterion="x", outcome="not asked", reason="no")
    assert verdict([*found, silent]) == verdict(found)
    closed = CriterionOutcome(criterion="x", outcome="missed", reason="no")
    assert verdict([*found, closed, *more]) == "NO-GO"


@settings(deadline=None, derandomize=True)
@given(outcomes.filter(bool))
def test_the_decisive_of_several_answers_is_the_worst(found: list[CriterionOutcome]) -> None:
    order = {"missed": 0, "undecided": 1, "met": 2, "not asked": 2}
    assert order[decisive(found).outcome] == min(order[one.outcome] for one in found)
