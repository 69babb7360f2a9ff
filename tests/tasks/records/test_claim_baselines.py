"""Baselines without a network stand beside every claim on labelled classification data, and may refuse its verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.judging.evaluations import Evaluation
from pipelines.lineage.store import Store
from pipelines.recipe.claims import COMPARISON, recipe_of_claim
from pipelines.recipe.kinds import Kind
from pipelines.recipe.lines import line_views
from pipelines.recipe.problems import Setting
from tasks.records.claims import PAGE, record_claim
from tests.steps import SHIPPED, shipped
from tests.tasks.records.test_claims import EXAMPLES, RIGHT, answers, measured

BASELINES = Evaluation.model_validate("baselines").reads or frozenset()
"""Task families for which baselines are defined."""
SUITES = {
    "text_classification": ["scores", "baselines"],
    "pair_classification": ["scores", "baselines"],
    None: ["scores"],
}


def constant(right: int) -> np.ndarray:
    """Statistics of a model that gives one answer, which is right `right` times of `EXAMPLES`."""
    return np.asarray([(int(index >= right), 0) for index in range(EXAMPLES)], dtype=float)


@pytest.mark.parametrize("family", SUITES)
def test_baselines_are_scored_where_they_are_defined(family: str | None) -> None:
    recipe = shipped("adapter")
    suite = recipe_of_claim(recipe, "within_a_point", setting=Setting(family=family)).stages[COMPARISON].suite
    assert [one.name for one in suite] == SUITES[family]


@pytest.mark.parametrize("name", sorted(SHIPPED.names()))
def test_every_report_on_classifiers_has_baselines(name: str) -> None:
    """Where all judged heads answer tasks for which baselines are defined, and so every dataset that fits has them."""
    recipe = shipped(name)
    for label, stage in recipe.stages.items():
        judges_tasks = any(one.judges != "language models" for one in stage.suite)
        if stage.kind is not Kind.EVALUATE or not judges_tasks:
            continue
        subjects = stage.start if isinstance(stage.start, tuple) else (stage.start,)
        judged = [shipped(one.partition("/")[0]).stages[one.partition("/")[2]] if "/" in one else recipe.stages[one]
                  for one in subjects if isinstance(one, str)]  # fmt: skip
        views = [view for one in judged for view in line_views(one).values() if view.head is not None]
        heads = [view.head for view in views if not view.kind.reads_plain_text and view.head is not None]
        of_task = [one.head for one in views if one.corpus == stage.corpus and one.head is not None] or heads
        if of_task and all(one.reads and one.reads <= BASELINES for one in of_task):
            assert any(one.baseline_sample for one in stage.suite), f"{label}: add baselines to its suite"


def test_other_figures_and_families_have_none() -> None:
    for name, claim, family in (("crf", "entities", "tagging"), ("ngram", "orders", "text_classification")):
        suite = recipe_of_claim(shipped(name), claim, setting=Setting(family=family)).stages[COMPARISON].suite
        assert len(suite) == 1


def test_few_labels_are_few_for_the_linear_model_too() -> None:
    recipe = shipped("siatl")
    name = next(name for name, one in recipe.claims.items() if any("few" in side.stage for side in one.form.sides()))
    for part_stages in (("few_alone", "few"), ("alone", "classify"), ("alone", "few")):
        suite = (
            recipe_of_claim(recipe, name, stages=part_stages, setting=Setting(family="text_classification"))
            .stages[COMPARISON]
            .suite
        )
        assert suite[1].model_dump().get("labelled") == (100 if part_stages[0] == "few_alone" else None)


@pytest.mark.parametrize(("frequent", "verdict"), [(30, "reproduced"), (75, "too near chance")])
def test_a_record_has_baselines_and_refuses_what_is_near_chance(tmp_path: Path, frequent: int, verdict: str) -> None:
    rows = {one: answers(right) for one, right in RIGHT.items()}
    without = {
        "constant:majority": constant(20),
        "constant:most_frequent": constant(frequent),
        "learned:tfidf": answers(90),
    }
    recipe, store = shipped("adapter"), Store(tmp_path / "store")
    record = record_claim(tmp_path, measured(tmp_path, store, recipe, "within_a_point", rows, without=without))
    assert record["verdict"] == verdict
    kept = {one["name"]: (one["binds"], round(one["figure"]["mean"], 3)) for one in record["baselines"]}
    assert set(kept) == {"majority", "most_frequent", "tfidf"} and kept["tfidf"] == (False, 0.9)
    assert kept["most_frequent"][0] and kept["majority"][0]
    row = next(line for line in (tmp_path / PAGE).read_text(encoding="utf-8").splitlines() if "adapter ·" in line)
    shown = f"most frequent test class {kept['most_frequent'][1]:.3f}, TF-IDF + logistic regression 0.900"
    assert shown in row and f"| **{verdict}** |" in row
