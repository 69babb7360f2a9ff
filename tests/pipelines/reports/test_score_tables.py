"""Scores of any family, prompts and word vectors as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.reports.elements.wording import difference, measured_in, metric_name, score, span
from pipelines.reports.report import render_report
from pipelines.reports.score_tables import read_evaluations, score_tables


def estimate(mean: float) -> dict[str, Any]:
    return {"mean": mean, "low": mean - 0.1, "high": mean + 0.1, "per_seed": [mean, mean]}


def change(by: float, verdict: str) -> dict[str, Any]:
    return {"difference": by, "low": by - 0.01, "high": by + 0.01, "verdict": verdict}


def ladder(metric: str, names: list[str], by: float, verdict: str) -> dict[str, Any]:
    return {
        "metrics": [metric],
        "examples": 40,
        "resamples": 1000,
        "verdict_metric": metric,
        "stages": [{"stage": name, "seeds": [0, 1], metric: estimate(0.2 * at)} for at, name in enumerate(names)],
        "ladder": [{"from": names[0], "to": names[1], metric: change(by, verdict), "verdict": verdict}],
        "whole_ladder": None,
    }


SECTIONS: dict[str, dict[str, Any]] = {
    "pairs": {"scores": ladder("spearman", ["plain", "tuned"], 0.213, "better")},
    "tags": {"scores": ladder("f1", ["softmax", "crf"], -0.05, "worse")},
    "prompts": {
        "prompting": {
            "metrics": ["accuracy"],
            "examples": 8,
            "resamples": 1000,
            "calibrated": True,
            "stages": [
                {
                    "stage": "general",
                    "seeds": [0],
                    "by_shots": [{"shots": n, "accuracy": estimate(0.3)} for n in (0, 4)],
                }
            ],
        },
        "word_vectors": {
            "models": [
                {
                    "stage": "general",
                    "width": 16,
                    "words": 1021,
                    "neighbours": {"<b>": [["king", 0.9]], "rare": None},
                    "analogies": {
                        "questions": 20,
                        "coverage": 0.5,
                        "accuracy": 0.4,
                        "accuracy_of_all": 0.2,
                        "relations": {"capital": {"right": 4, "questions": 10}},
                        "low": 0.2,
                        "high": 0.6,
                    },
                },
                {"stage": "cbow", "width": 16, "words": 1021, "neighbours": {"<b>": [["queen", 0.8]]}},
            ]
        },
    },
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for stage, sections in SECTIONS.items():
        (tmp_path / stage).mkdir()
        document = {"dataset": {"language": "en"}, "sections": sections}
        (tmp_path / stage / EVALUATION).write_text(json.dumps(document))
    return tmp_path


def test_every_table_is_found_and_none_hides_another(store: Path) -> None:
    tables = score_tables(read_evaluations(store, [(stage, stage) for stage in (*SECTIONS, "absent")]))
    assert [(table.stage, table.prompted, [row.name for row in table.rows]) for table in tables] == [
        ("pairs", False, ["plain", "tuned"]),
        ("tags", False, ["softmax", "crf"]),
        ("prompts", True, ["general, no example", "general, 4 examples"]),
    ]


def test_the_page_shows_all_of_it_in_the_units_of_each_metric(store: Path) -> None:
    steps = [
        {"stage": stage, "seed": 0, "kind": "evaluate", "fingerprint": stage, "parents": {}, "cached": True}
        for stage in SECTIONS
    ]
    told = {"id": "x", "recipe": "r", "dataset": "d", "started": "now", "seconds": None, "steps": steps}
    summary = {
        "language": "en",
        "family": "tagging",
        "labels": ["O", "B-name", "I-name"],
        "tables": {},
        "shown": [{"tokens": ["Ada", "wrote"], "tags": ["B-name", "O"], "source": "x"}],
    }
    summary["tables"] = {"train": {"documents": 1, "characters": 9, "bytes": 9}}
    page = render_report(told, {}, store, summary, {}, store / "report.html").read_text(encoding="utf-8")
    assert "Scores higher: tuned instead of plain." in page
    assert "Scores lower: crf instead of softmax." in page
    assert "+0.213" in page and "−5.0" in page
    assert "Spearman correlation" in page and "Points of F1" in page
    assert "0.200 Spearman correlation on 40 test examples" in page
    assert "corrected by its probability after" in page
    assert "&lt;b&gt;" in page and "<b>" not in page
    assert "The vectors of general solve 40.0\u00a0% of the analogies" in page
    assert "4 of 10" in page
    assert "tagging, 3 labels: O, B-name, I-name" in page
    assert "<strong>name: Ada</strong>" in page


def test_metrics_are_written_as_people_write_them() -> None:
    assert [score(0.6132, metric) for metric in ("accuracy", "bleu", "mcc")] == ["61.3 %", "61.3", "0.613"]
    assert [difference(-0.021, metric) for metric in ("f1", "pearson")] == ["−2.1", "−0.021"]
    assert [measured_in(metric) for metric in ("exact_match", "chrf")] == ["points of exact match", "chrF2"]
    assert (metric_name("macro_f1"), span(-0.1, 0.2, "mcc")) == ("macro-F1", "−0.100 to 0.200")
