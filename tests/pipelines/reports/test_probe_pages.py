"""The pages of probes and of forgetting show what was recorded, and nothing where nothing was."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.judging.probes import LAYERS, Observation, ProbedStage
from pipelines.judging.probes.edge import EdgeProbe
from pipelines.judging.probes.forgetting import ForgettingProbe
from pipelines.judging.probes.linear import LinearProbe
from pipelines.judging.probes.records import rounded
from pipelines.lineage.results import PROBES
from pipelines.reports.report import write_pages
from pipelines.reports.sections import Report, Section

EXECUTION = {"id": "x", "recipe": "probes", "dataset": "trees", "started": "2026-11-21", "seconds": 1.0}


def share(right: float, items: int = 60) -> np.ndarray:
    """Items of which `right` are answered rightly, and their number."""
    return np.stack([np.arange(items) < right * items, np.ones(items)], axis=1).astype(float)


def sections() -> dict[str, Any]:
    linear = [
        ProbedStage(
            name,
            (0,),
            (
                Observation(
                    {LAYERS: np.stack([np.insert(share(one), 1, share(0.3)[:, 0], 1) for one in layers])}, notes={}
                ),
            ),
        )
        for name, layers in (("general", (0.5, 0.6)), ("domain", (0.5, 0.95)))
    ]
    mixed = {"mix": [0.25, 0.75], "centre_of_gravity": 0.75, "expected_layer": None}
    edge = [ProbedStage("general", (0,), (Observation({LAYERS: np.stack([share(0.4), share(0.7)])}, notes=mixed),))]
    noise = np.random.default_rng(0).normal(size=60)
    lost = [
        ProbedStage(
            name,
            (0,),
            (Observation({**loss, "bigram_shift": share(0.6)}, notes={"chances": {"bigram_shift": 0.5}, **notes}),),
        )
        for name, loss, notes in (
            (
                "general",
                {"loss": np.stack([30 + noise, np.full(60, 6.0)], 1)},
                {"way": "masked tokens", "targets": "a"},
            ),
            ("domain", {"loss": np.stack([33 + noise, np.full(60, 6.0)], 1)}, {"way": "masked tokens", "targets": "a"}),
            ("classify", {}, {"way": "its head answers a task", "targets": None}),
        )
    ]
    made = {
        "linear": LinearProbe().record(linear, 0),
        "edge": EdgeProbe().record(edge, 0),
        "forgetting": ForgettingProbe().record(lost, 0),
    }
    found: dict[str, Any] = rounded(made)
    return found


@pytest.fixture
def report(tmp_path: Path) -> Report:
    folder = tmp_path / "store" / "f"
    folder.mkdir(parents=True)
    (folder / PROBES).write_text(json.dumps({"sections": sections()}), encoding="utf-8")
    steps = [{"stage": "look", "seed": 0, "kind": "probe", "fingerprint": "f", "cached": False}]
    return Report({**EXECUTION, "steps": steps}, {}, tmp_path / "store", [])


def test_both_pages_are_written_with_their_tables_and_sentences(report: Report, tmp_path: Path) -> None:
    common = {"execution": report.execution, "language": "en"}
    told, links = write_pages(report, tmp_path / "report.html", common)
    assert [link["file"] for link in links] == ["report.html", "forgetting.html", "probes.html"]
    assert any("Linear: best from layer 1 of domain, 95.0 % accuracy" in one for one in told)
    assert any("1 of 2 changes of a layer are significant" in one and "+35.0 points of accuracy" in one for one in told)
    assert any("From general to domain the models forgot general text: 5.0" in one and "(+0.500" in one for one in told)
    page = (tmp_path / "probes.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 3 and "0.25 · 0.75" in page and "http" not in page.replace("http-equiv", "")
    page = (tmp_path / "forgetting.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 and "classify is not measured: its head answers a task" in page
    record = sections()
    with (tmp_path / "tables" / "probes-look-linear-changes.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    (change,) = record["linear"]["changes"]
    assert [float(row["change.difference"]) for row in rows] == [
        one["accuracy"]["difference"] for one in change["layers"]
    ]
    assert [row["verdict"] for row in rows] == ["cannot tell", "better"]
    with (tmp_path / "tables" / "forgetting-look-boundaries.csv").open(encoding="utf-8") as file:
        losses = [row["loss.mean"] for row in csv.DictReader(file)]
    assert losses[2] == "" and float(losses[0]) == record["forgetting"]["boundaries"][0]["loss"]["mean"]


def test_without_a_probe_stage_there_is_no_page(tmp_path: Path) -> None:
    steps = [{"stage": "report", "seed": 0, "kind": "evaluate", "fingerprint": "e", "cached": False}]
    report = Report({**EXECUTION, "steps": steps}, {}, tmp_path, [])
    for name in ("probes", "forgetting"):
        page = Section.model_validate(name)
        assert page.section_data(report) is None
