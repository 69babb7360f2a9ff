"""What executions are compared by: the scores of three models with the ends of their intervals, and the cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.lineage.provenance import DataSource
from pipelines.lineage.store import Store
from pipelines.recipe.final_models import LineageStep
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.recipe.profiles import smoke
from tasks.launchers.settings import TrainingSettings
from tasks.records.execution_parameters import KEYS, execution_parameters
from tasks.records.headlines import headline_of
from tests.tasks.conftest import Builder


@pytest.fixture
def builder(tmp_path: Path, classifier_folder: Path) -> Builder:
    return Builder(tmp_path, classifier_folder)


def score(mean: float) -> dict[str, Any]:
    return {"mean": mean, "low": mean - 0.02, "high": mean + 0.02, "per_seed": [mean]}


def stage(name: str, **scores: float) -> dict[str, Any]:
    return {"stage": name, "seeds": [0], **{metric: score(value) for metric, value in scores.items()}}


def regime(builder: Builder, sections: Mapping[str, Any], task: str | None = None) -> list[LineageStep]:
    """general → classify, small; an evaluation with these sections."""
    general = builder.step("general", "pretrain")
    models = [builder.step(name, "finetune", parents={"start": general.fingerprint}) for name in ("classify", "small")]
    judged = {f"subject:{one.provenance.stage}@0": one.fingerprint for one in models}
    report = builder.step("report", "evaluate", parents=judged)
    document = {"dataset": {"task": task} if task else {}, "sections": sections}
    (report.folder / "evaluation.json").write_text(json.dumps(document), encoding="utf-8")
    records = [one.provenance for one in (general, *models, report)]
    return [LineageStep(one.stage, one.seed, one.kind, one.fingerprint, one.parents) for one in records]


CLASSIFIED = {
    "classification": {
        "metrics": ["accuracy", "macro_f1"],
        "verdict_metric": "macro_f1",
        "stages": [stage("classify", accuracy=0.6, macro_f1=0.7), stage("small", accuracy=0.65, macro_f1=0.5)],
    },
    "baselines": {
        "baselines": [
            {"name": "majority", "accuracy": score(0.2), "macro_f1": score(0.1)},
            {"name": "tfidf", "accuracy": score(0.5), "macro_f1": score(0.4)},
        ]
    },
}


def test_the_best_the_served_and_the_baseline_have_scores_with_interval_ends(builder: Builder) -> None:
    headline = headline_of(builder.store, regime(builder, CLASSIFIED))
    # the metric of the verdicts decides which model is the best
    assert headline.models == {"best": "classify", "served": "small", "baseline": "TF-IDF + logistic regression"}
    metrics = headline.metrics
    assert [metrics[f"best/macro_f1{end}"] for end in ("", "_low", "_high")] == pytest.approx([0.7, 0.68, 0.72])
    assert (metrics["best/accuracy"], metrics["served/accuracy"], metrics["baseline/accuracy"]) == (0.6, 0.65, 0.5)
    # 95 s, 2000 tokens a step, whenever it was computed
    assert (metrics["cost/seconds"], metrics["cost/tokens"]) == (4 * 95.0, 4 * 2000)
    assert metrics["cost/bytes"] > (builder.model / "model.safetensors").stat().st_size


def test_the_scores_on_a_named_task_have_its_name(builder: Builder) -> None:
    metrics = headline_of(builder.store, regime(builder, CLASSIFIED, task="rte")).metrics
    assert "best/rte/accuracy_low" in metrics and "best/accuracy" not in metrics


def test_the_best_language_model_has_the_fewest_bits(builder: Builder) -> None:
    def likelihood(name: str, bits: float) -> dict[str, Any]:
        return {"stage": name, "seeds": [0], "perplexity": score(10 * bits), "bits_per_byte": score(bits)}

    section = {"perplexity": "perplexity", "stages": [likelihood("trigram", 2.5), likelihood("general", 1.9)]}
    headline = headline_of(builder.store, regime(builder, {"perplexity": section}))
    assert headline.metrics["best/bits_per_byte"] == headline.metrics["served/bits_per_byte"] == 1.9
    assert headline.metrics["best/perplexity_high"] == pytest.approx(19.02)
    assert headline.models["best"] == "general"


def test_an_execution_of_nothing_has_no_figures(tmp_path: Path) -> None:
    headline = headline_of(Store(tmp_path), [LineageStep("general", 0, "pretrain", "0" * 64, {})])
    assert headline.metrics == {"cost/seconds": 0.0, "cost/tokens": 0.0} and headline.models == {"served": "general"}


def test_every_execution_has_the_same_parameters(sources: dict[str, DataSource]) -> None:
    library = Library(Path(__file__).parents[3] / "recipes")
    made = plan(smoke(library.load("bert")), library, sources, profile=smoke)
    values = execution_parameters(made, "docs", ["hour"], TrainingSettings(devices=2), "0123abc", smoke=True)
    assert tuple(values) == KEYS
    assert values["launcher"] == "local, 2 ranks" and (values["variants"], values["smoke"]) == ("hour", "true")
    assert all(f"{name}" in values["budgets"] for name in ("general", "classify")) and " tokens" in values["budgets"]
    bare = execution_parameters(made, "docs", [], TrainingSettings(), None, smoke=False)
    assert (bare["variants"], bare["commit"], bare["launcher"]) == ("none", "none", "local")
