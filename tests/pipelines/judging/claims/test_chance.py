"""A verdict is refused where nothing that is compared is surely above an answer that reads no text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pipelines.components import discover
from pipelines.judging.claims import ClaimForm, ComparedSide, read_form
from pipelines.judging.claims.chance import margin_of, near_chance
from pipelines.judging.claims.judgement import MeasuredSide, judge
from pipelines.judging.figures import RecordedFigure, row_mean
from pipelines.judging.samples import CONSTANT, LEARNED

discover(ClaimForm.__module__)
ACCURACY = RecordedFigure("accuracy", "answers", row_mean, bounds=(-1.0, 1.0))
GREATER = read_form("greater", {"system": "a", "baseline": "b"})
SIZE = 400


def answers(accuracy: float, seeds: int = 3) -> list[np.ndarray]:
    """Right answers to the first examples of a table, some other ones in each seed."""
    rows = [np.arange(SIZE) < round(accuracy * SIZE) for _ in range(seeds)]
    return [np.roll(one, 7 * seed)[:, None].astype(float) for seed, one in enumerate(rows)]


def chance(**shares: float) -> dict[str, np.ndarray]:
    """Right answers of baselines, to examples that lie elsewhere than those of `answers`."""
    return {name.replace("_", ":", 1): answers(share, 1)[0][::-1] for name, share in shares.items()}


def refused(form: ClaimForm, models: Mapping[str, Sequence[np.ndarray]], baselines: Mapping[str, np.ndarray]) -> bool:
    def measured(side: ComparedSide) -> MeasuredSide:
        return MeasuredSide(models[side.stage], "test", row_mean)

    return near_chance(form, ACCURACY, measured, lambda side: baselines, 0)


def test_the_most_frequent_test_class_binds_where_the_training_table_is_balanced() -> None:
    """The default task: 2.9 % by the training labels, 29.9 % by the test's; models at a fifth have learnt nothing."""
    models = {"a": answers(0.22), "b": answers(0.15)}
    judged = judge(GREATER, ACCURACY, False, lambda side: MeasuredSide(models[side.stage], "test", row_mean), 0)
    assert judged[0].verdict == "reproduced", "by itself the difference is certain"
    assert not refused(GREATER, models, chance(constant_majority=0.029))
    assert refused(GREATER, models, chance(constant_majority=0.029, constant_most_frequent=0.299))


@pytest.mark.parametrize(("system", "baseline", "near"), [
    (0.60, 0.50, False), (0.60, 0.29, False), (0.25, 0.60, False), (0.31, 0.29, True), (0.20, 0.10, True),
])  # fmt: skip
def test_one_side_above_chance_is_enough(system: float, baseline: float, near: bool) -> None:
    models = {"a": answers(system), "b": answers(baseline)}
    assert refused(GREATER, models, chance(constant_most_frequent=0.3)) is near


def test_tfidf_decides_nothing() -> None:
    models = {"a": answers(0.6), "b": answers(0.5)}
    assert not refused(GREATER, models, chance(constant_majority=0.3, learned_tfidf=0.9))
    assert {CONSTANT, LEARNED} == {f"{name.partition(':')[0]}:" for name in chance(constant_a=0, learned_b=0)}


def test_above_chance_means_by_the_claims_own_margin() -> None:
    models, constant = {"a": answers(0.45), "b": answers(0.44)}, chance(constant_most_frequent=0.3)
    assert not refused(GREATER, models, constant)
    within = read_form("within", {"system": "a", "baseline": "b", "margin": 0.2})
    assert margin_of(within) == 0.2 and refused(within, models, constant), "within 20 points of what is 15 above chance"
    assert margin_of(read_form("times", {"system": "a", "baseline": "b", "at_least": 3})) == 0


def test_every_dataset_of_a_claim_needs_a_side_above_chance() -> None:
    form = read_form("gains_more", {"system": ["a", "b"], "baseline": ["a", "b"]})
    levels = {("a", "system"): 0.8, ("b", "system"): 0.6, ("a", "baseline"): 0.31, ("b", "baseline"): 0.3}

    def measured(side: ComparedSide) -> MeasuredSide:
        return MeasuredSide(answers(levels[side.stage, side.judged]), side.judged, row_mean)

    constant = chance(constant_majority=0.3)
    assert near_chance(form, ACCURACY, measured, lambda side: constant, 0)
    levels["a", "baseline"] = 0.6
    assert not near_chance(form, ACCURACY, measured, lambda side: constant, 0)


def test_nothing_is_near_chance_where_there_is_none() -> None:
    assert not refused(GREATER, {"a": answers(0.1), "b": answers(0.1)}, {})
