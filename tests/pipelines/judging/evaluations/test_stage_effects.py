"""Factorial effects (`stage_effects`): equal to those of a regression on ±1 columns, with honest verdicts."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from pipelines.errors import RecipeError
from pipelines.judging.evaluations.context import EvaluationContext
from pipelines.judging.evaluations.stage_effects import StageEffectsEvaluation
from pipelines.reports.elements.path_costs import factor_costs, path_costs
from pipelines.reports.sections.lattice import LatticeSection, settled_by
from pipelines.task_families.text_classification import TextClassification
from pipelines.training.batches.few_labels import MIN_EXAMPLES, subsample

FACTORS = ("general", "domain", "task")
SUBSETS = [kept for size in range(4) for kept in combinations(FACTORS, size)]
GAINS = {"general": 0.0, "domain": 0.10, "task": 0.03}
LABELS = ["no", "yes"]


def judged(seeds: int, items: int, sizes: tuple[int | None, ...] = (None,)) -> tuple[StageEffectsEvaluation, Any]:
    """An effects evaluation, and the answers of simulated models whose accuracy is 0.6 and the gains of their path."""
    generator = np.random.default_rng(0)
    family = TextClassification()
    hard = generator.random(items)
    paths, answering, answers = [], {}, {}
    for size in sizes:
        for through in SUBSETS:
            stage = "_".join(through) + f"_{size}"
            paths.append({"stage": stage, "through": through, "labelled": size})
            answering[stage] = [SimpleNamespace(stage=stage, seed=seed) for seed in range(seeds)]
            gain = sum(GAINS[one] for one in through) + (0 if size is None else -0.2)
            for seed in range(seeds):
                right = hard < 0.6 + gain + 0.01 * generator.standard_normal() + 0.05 * generator.standard_normal(items)
                answers[stage, seed] = family.statistics(
                    ["yes"] * items, ["yes" if one else "no" for one in right], LABELS
                )
    context = SimpleNamespace(
        family=family,
        task_models=answering,
        rows=[{}] * items,
        seed=0,
        statistics=lambda model: answers[model.stage, model.seed],
    )
    return StageEffectsEvaluation.model_validate({"factors": FACTORS, "paths": paths, "metric": "accuracy"}), context


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    evaluation, context = judged(seeds=4, items=600)
    return evaluation.measure(cast("EvaluationContext", context))


def test_effects_are_those_of_a_regression(record: dict[str, Any]) -> None:
    rows, scores = [], []
    for path in record["paths"]:
        signs = [1.0 if factor in path["through"] else -1.0 for factor in FACTORS]
        rows.append([np.prod([signs[one] for one in of]) for size in range(4) for of in combinations(range(3), size)])
        scores.append(path["score"]["mean"])
    fitted, *_ = np.linalg.lstsq(np.asarray(rows), np.asarray(scores), rcond=None)
    assert [effect["difference"] for effect in record["effects"]] == pytest.approx(2 * fitted[1:], abs=1e-9)
    step = next(one for one in record["steps"] if one["adds"] == "domain" and one["from"] == "general_None")
    means = {path["stage"]: path["score"]["mean"] for path in record["paths"]}
    assert step["difference"] == pytest.approx(means["general_domain_None"] - means["general_None"])
    assert len(record["steps"]) == 12


def test_what_pays_is_found_and_what_does_not_is_not(record: dict[str, Any]) -> None:
    by_name = {effect["of"][0]: effect for effect in record["effects"] if len(effect["of"]) == 1}
    assert by_name["domain"]["verdict"] == "pays"
    assert by_name["domain"]["low"] < 0.10 < by_name["domain"]["high"]
    assert by_name["general"]["verdict"] == "cannot tell"
    assert by_name["general"]["p_holm"] >= by_name["general"]["p"]
    assert by_name["domain"]["settled_by"] is None
    assert record["headline"]["effect/domain"] == by_name["domain"]["difference"]


def test_one_seed_is_refused() -> None:
    evaluation, context = judged(seeds=1, items=50)
    with pytest.raises(RecipeError, match="has one seed.*--seeds"):
        evaluation.measure(cast("EvaluationContext", context))


def test_the_page_tells_of_effects_costs_and_curves() -> None:
    evaluation, context = judged(seeds=2, items=120, sizes=(20, None))
    section = evaluation.measure(cast("EvaluationContext", context))
    records: dict[str, dict[str, Any]] = {}
    steps: list[dict[str, str]] = []

    def made(stage: str, kind: str, start: str | None, tokens: int, shape: bool = False) -> None:
        records[stage] = {
            "kind": kind,
            "identity": {"untrained": shape},
            "parents": {"start": start} if start else {},
            "result": {"tokens": tokens},
            "environment": {"seconds": tokens / 10},
        }
        steps.append({"stage": stage, "fingerprint": stage})

    for through in SUBSETS:
        for length in range(1, len(through) + 1):
            name = "_".join(through[:length])
            if name not in records:
                made(name, "pretrain", "_".join(through[: length - 1]) or None, 600, shape=length == 1)
        for size in (20, None):
            made("_".join(through) + f"_{size}", "finetune", "_".join(through) or "general", 5, shape=not through)
    costs = path_costs([path["stage"] for path in section["paths"]], steps, records)
    assert costs["_None"].tokens == 0 and costs["general_domain_task_None"].tokens == 1800
    # the machine did other things too, which is no doing of the other stages
    records["domain"]["environment"] = {"seconds": 600.0}
    worth = factor_costs(section["paths"], steps, records)
    assert {name: cost.tokens for name, cost in worth.items()} == pytest.approx(dict.fromkeys(FACTORS, 600))
    assert [worth[name].minutes for name in ("general", "domain", "task")] == pytest.approx([1.0, (10 + 1) / 2, 1.0])

    report = SimpleNamespace(
        sections=lambda key: [("lattice", section)] if key in section else [],
        evaluations=[SimpleNamespace(stage="lattice", dataset={"texts": {"train": 900}})],
        execution={"steps": steps},
        records=records,
        store=Path(),
    )
    page = LatticeSection()
    content = page.section_data(cast("Any", report))
    assert content is not None
    assert content["drawn"].count("<rect") == 8 and content["drawn"].count("<line") == 12
    assert content["curves"].count("<polyline") == 8 and "all 900" in content["curves"]
    told = page.sentences(content)
    assert any(one.startswith("The stage domain pays: +") and "600 tokens and 5.5 minutes" in one for one in told)
    tables = {table.key: table for table in page.tables(content)}
    assert len(tables["paths"].rows) == 16 and len(tables["stages"].rows) == 3 and len(tables["interactions"].rows) == 4
    assert "from scratch" in tables["paths"].csv() and "\\toprule" in tables["stages"].latex()


def test_what_would_settle_a_question_in_words() -> None:
    assert settled_by({"settled_by": {"seeds": 9, "items": 1898}}) == "9 seeds or 1,898 test items"
    assert settled_by({"settled_by": {"seeds": None, "items": None}}) == "neither alone"
    assert settled_by({"settled_by": None}) == "", "it is settled"


def test_fewer_labels_have_one_of_each_and_as_many_updates() -> None:
    labels = ["rare" if number == 7 else "common" for number in range(500)]
    first, again, other = (subsample(500, 10, seed, labels) for seed in (0, 0, 1))
    assert first == again != other
    assert len(first) == MIN_EXAMPLES
    assert len(set(first)) == 10
    assert {labels[index] for index in first} == {"rare", "common"}
    assert first[:10] * (MIN_EXAMPLES // 10) == first, "in turn, so that each is shown as often as any"
    assert subsample(500, 300, 0) != list(range(300)) and len(subsample(500, 300, 0)) == 300
    assert len(subsample(30, 100, 0, labels[:30])) == 30, "no more than there are"
