"""Averages of several networks: of real models against the written predictions, and of planted rows by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from sklearn.metrics import accuracy_score, f1_score

from pipelines.errors import RecipeError
from pipelines.judging.evaluations.averaged_answers import SAMPLE, AveragedAnswersEvaluation, gain, of_average
from pipelines.judging.evaluations.context import EvaluationContext
from pipelines.judging.evaluations.stage import EVALUATION, PREDICTIONS, evaluate
from pipelines.judging.figures import row_mean
from pipelines.judging.samples import read_samples
from tests.pipelines.judging.evaluations.conftest import Trained
from tests.pipelines.judging.evaluations.test_robustness import job


def test_figures_are_those_of_the_first_half_and_of_the_difference() -> None:
    rows = np.asarray([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    assert of_average(row_mean)(rows) == 0.75 and gain(row_mean)(rows) == 0.5


def test_an_average_answers_what_its_mean_probabilities_say(trained: Trained, tmp_path: Path) -> None:
    evaluate(job(trained, tmp_path, [{"name": "averaged_answers", "metric": "accuracy"}]))
    section = json.loads((tmp_path / EVALUATION).read_text())["sections"]["averaged_answers"]
    table = parquet.read_table(tmp_path / PREDICTIONS)
    labels = json.loads(table.schema.metadata[b"labels"])
    rows = table.to_pylist()
    samples = read_samples(tmp_path)
    figures = {one.name: one for one in AveragedAnswersEvaluation.figures(job(trained, tmp_path, []).family)}
    for stage in section["stages"]:
        of_stage = [row for row in rows if row["stage"] == stage["stage"]]
        truth = [row["label"] for row in of_stage if row["seed"] == 0]
        seeds = [[row["probabilities"] for row in of_stage if row["seed"] == seed] for seed in stage["seeds"]]
        answers = [labels[choice] for choice in np.mean(seeds, axis=0).argmax(axis=1)]
        single = [[labels[choice] for choice in np.argmax(one, axis=1)] for one in seeds]
        averaged, alone = accuracy_score(truth, answers), [accuracy_score(truth, one) for one in single]
        assert stage["accuracy_of_average"]["mean"] == pytest.approx(averaged, abs=1e-4)
        assert stage["accuracy_gain_of_average"]["per_seed"] == pytest.approx(
            [averaged - one for one in alone], abs=1e-4
        )
        assert stage["macro_f1_of_average"]["mean"] == pytest.approx(
            f1_score(truth, answers, average="macro"), abs=1e-4
        )
        assert [one["networks"] for one in stage["networks"]] == [1, 2, 3]
        assert stage["networks"][0]["accuracy"] == pytest.approx(np.mean(alone), abs=1e-4)
        assert stage["networks"][-1]["accuracy"] == pytest.approx(averaged, abs=1e-4)
        kept = samples[SAMPLE, stage["stage"]]
        score = figures["accuracy_gain_of_average"].score
        assert [score(one) for one in kept] == pytest.approx(stage["accuracy_gain_of_average"]["per_seed"])


def test_a_single_seed_gains_nothing(trained: Trained, tmp_path: Path) -> None:
    one = (trained.first("classify"),)
    evaluate(job(trained, tmp_path, ["averaged_answers"], subjects=one))
    (stage,) = json.loads((tmp_path / EVALUATION).read_text())["sections"]["averaged_answers"]["stages"]
    assert stage["macro_f1_gain_of_average"]["per_seed"] == [0.0] and len(stage["networks"]) == 1


def test_answers_without_probabilities_are_refused(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EvaluationContext, "has_class_probabilities", lambda self, subject: False)
    context = EvaluationContext(job(trained, tmp_path, []))
    with pytest.raises(RecipeError, match="scratch gives its answers no probabilities that could be averaged"):
        AveragedAnswersEvaluation().measure(context)
