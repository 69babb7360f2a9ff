"""Published figures: read strictly, placed beside models that went through the same stages."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pipelines.errors import DataError
from pipelines.reports.anchors import ANCHORS, read_anchors
from pipelines.reports.score_tables import EvaluationRecord
from pipelines.reports.sections.anchors import PublishedSection
from tests.steps import ROOT


def test_the_shipped_file_has_the_eight_tasks_of_its_paper() -> None:
    anchors = read_anchors(ROOT)
    eight = {anchor.dataset for anchor in anchors if "2004.10964" in anchor.source}
    assert len(eight) == 8
    assert all(anchor.source and anchor.parameters > 1_000_000 for anchor in anchors)


def test_a_mistake_names_the_file_and_the_entry(tmp_path: Path) -> None:
    assert read_anchors(tmp_path) == ()
    path = tmp_path / ANCHORS
    figures = "[{through: [pretrian], value: 1}]"
    entry = f"{{dataset: x, system: y, source: z, metric: accuracy, parameters: 1, figures: {figures}}}"
    path.write_text(f"anchors:\n  - {entry}\n")
    with pytest.raises(DataError, match=r"anchors.yaml: anchors.0.figures.0.through.0: .*pretrain"):
        read_anchors(tmp_path)
    path.write_text("anchors: [")
    with pytest.raises(DataError, match="not YAML"):
        read_anchors(tmp_path)


def record(kind: str, start: str | None, untrained: bool = False) -> dict[str, Any]:
    return {
        "kind": kind,
        "identity": {"untrained": untrained},
        "parents": {"start": start} if start else {},
        "result": {"parameters": 1_000_000},
    }


def test_only_models_of_the_same_stages_stand_beside_a_figure() -> None:
    records = {
        "a": record("pretrain", None),
        "b": record("adapt_domain", "a"),
        "full": record("finetune", "b"),
        "plain": record("finetune", "a"),
        "scratch": record("finetune", "a", untrained=True),
        "small": record("compress", "full"),
    }
    names = ("full", "plain", "scratch", "small")
    score = {"mean": 0.5, "low": 0.4, "high": 0.6, "per_seed": [0.5]}
    section = {"metrics": ["macro_f1"], "stages": [{"stage": name, "seeds": [0], "macro_f1": score} for name in names]}
    report = SimpleNamespace(
        execution={"dataset": "citation_intent", "steps": [{"stage": name, "fingerprint": name} for name in names]},
        records=records,
        evaluations=[EvaluationRecord("report", {}, {"scores": section})],
        anchors=read_anchors(ROOT),
    )
    content = PublishedSection().section_data(cast("Any", report))
    assert content is not None
    found = {row["model"]: (row["published"], row["scale"]) for row in content["rows"]}
    assert found == {"full": (0.754, "published 125x larger"), "plain": (0.63, "published 125x larger")}
    assert "compare gains" in PublishedSection().sentences(content)[0]
    (table,) = PublishedSection().tables(content)
    assert "75.4 %" in table.html() and "0.754" in table.csv()
    report.execution["dataset"] = "another"
    assert PublishedSection().section_data(cast("Any", report)) is None
