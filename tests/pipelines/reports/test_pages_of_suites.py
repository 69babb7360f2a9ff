"""The pages on robustness and on calibration: figures are those of the record, also in CSV; nothing is fetched."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.reports.report import render_report
from tests.pipelines.judging.evaluations.conftest import Trained
from tests.pipelines.judging.evaluations.test_robustness import job
from tests.pipelines.reports.test_report import Tags

SUITE: list[dict[str, Any]] = [
    {"name": "scores"},
    {"name": "robustness", "attacks": ["shuffled_letters", "punctuation"], "rate": 0.8, "examples": 60},
    "calibration",
    "slices",
    "errors",
]


@pytest.fixture(scope="module")
def written(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder of the pages, and the sections they were made from."""
    store, fingerprint = tmp_path_factory.mktemp("store"), "e" * 64
    evaluate(job(trained, store / fingerprint, SUITE))
    step = {"stage": "report", "seed": 0, "kind": "evaluate", "fingerprint": fingerprint, "parents": {}}
    execution = {
        "id": "20260101-000000-tiny",
        "recipe": "tiny",
        "dataset": "documentation",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 75.0,
        "steps": [{**step, "cached": False, "seconds": 3.0}],
    }
    out = tmp_path_factory.mktemp("pages") / "report.html"
    render_report(execution, {}, store, {}, {}, out)
    return out.parent, json.loads((store / fingerprint / EVALUATION).read_text())["sections"]


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    assert (folder / "tables" / f"{name}.tex").read_text().startswith("\\begin{tabular}")
    with (folder / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("page", ["robustness", "calibration"])
def test_a_page_opens_without_fetching_or_running_anything(page: str, written: tuple[Path, dict[str, Any]]) -> None:
    text = (written[0] / f"{page}.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert not tags.open and set(tags.references) == {"a href"}
    assert f'href="{page}.html" aria-current="page"' in text and 'href="report.html"' in text
    assert "var(--c0)" in text or "var(--accent)" in text, "plots take the colours of light, dark and print"


def test_what_attacks_cost_is_the_record(written: tuple[Path, dict[str, Any]]) -> None:
    folder, sections = written
    record = sections["robustness"]
    losses = rows(folder, "robustness-report-losses")
    assert [(row["stage"], row["attack"]) for row in losses] == [
        (one["stage"], name) for one in record["stages"] for name in record["attacks"]
    ]
    for row in losses:
        (stage,) = [one for one in record["stages"] if one["stage"] == row["stage"]]
        found = stage["loss"][row["attack"]]["macro_f1"]
        assert [float(row[f"loss.{end}"]) for end in ("difference", "low", "high")] == [
            found["difference"], found["low"], found["high"]
        ]  # fmt: skip
    clean, *attacked = rows(folder, "robustness-report-attacked")
    assert clean["attack"] == "no attack" and [row["attack"] for row in attacked] == record["attacks"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    (classify,) = [one for one in record["stages"] if one["stage"] == "classify"]
    felt = [name for name in record["attacks"] if classify["loss"][name]["macro_f1"]["verdict"] == "worse"]
    lowered = "{} of 2 attacks lower the score of classify significantly, ".format
    assert (lowered(len(felt)) if felt else "No attack lowers the score of classify ") in page
    # what attacks left of a score is no score of the stage
    assert page.count("Stages that pay") + page.count(">Scores") == 1


def test_how_sure_models_are_and_what_they_get_wrong_is_the_record(written: tuple[Path, dict[str, Any]]) -> None:
    folder, sections = written
    for row, stage in zip(
        rows(folder, "calibration-report-calibration"), sections["calibration"]["stages"], strict=True
    ):
        assert float(row["equal_mass.mean"]) == stage["ece"]["equal_mass"]["mean"]
        assert float(row["brier.high"]) == stage["brier"]["high"]
    bins = rows(folder, "calibration-report-reliability")
    assert len(bins) == sum(len(stage["diagram"]) for stage in sections["calibration"]["stages"])
    lengths = rows(folder, "calibration-report-length")
    assert [int(row["examples"]) for row in lengths] == [
        group["examples"] for group in sections["slices"]["slices"][0]["groups"]
    ]
    assert len(rows(folder, "calibration-report-classes")) == len(sections["slices"]["classes"])
    (stage,) = [one for one in sections["errors"]["stages"] if one["stage"] == "classify"]
    shown = rows(folder, "calibration-report-errors-classify")
    assert [int(row["index"]) for row in shown] == [one["index"] for one in stage["errors"]]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "calibration error is" in page and "by chance." in page
