"""The page of a real, small execution: everything inside it, nothing invented, nothing executable."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.recipe.job import Job
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Stage
from pipelines.reports.elements.axes import count, duration, ticks
from pipelines.reports.elements.curves import thinned, tokens_before
from pipelines.reports.index import best_scores, render_index
from pipelines.reports.report import _sampled_validations, read_records, render_report
from pipelines.reports.score_tables import EXECUTION, read_evaluations, score_tables
from tests.made_once import made_once
from tests.pipelines.judging.evaluations.conftest import Trained

SUITE: list[dict[str, Any]] = [
    {"name": "classification", "ladder": ["scratch", "classify"]},
    {"name": "baselines"},
    {"name": "footprint", "stages": ["classify", "int8"], "rounds": 3},
]


class Tags(HTMLParser):
    """Collects what a browser would open or run, and checks that tags close."""

    void = frozenset({"meta", "link", "br", "img", "input", "line", "circle", "rect", "path", "polyline"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.references += [
            f"{tag} {name}" for name, _ in attributes if name in ("src", "href") or name.startswith("on")
        ]
        if tag in ("script", "link", "iframe", "object"):
            self.references.append(tag)
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.void:
            assert self.open.pop() == tag


def _record(step: dict[str, Any], data: list[str], tokens: int) -> dict[str, Any]:
    return {
        **{name: step[name] for name in ("fingerprint", "stage", "kind", "seed", "parents")},
        "recipe": "tiny",
        "identity": {},
        "data": {name: {"digest": "d" * 32, "path": f"data/prepared/x/{name}.parquet"} for name in data},
        "files": {},
        "result": {"metrics": {}, "tokens": tokens, "steps": 3, "parameters": 1000},
        "environment": {
            "python": "3.11.7",
            "platform": "Linux",
            "packages": {"torch": "2.13.0"},
            "commit": None,
            "started": "2026-01-01T00:00:00+00:00",
            "seconds": 3.0,
            "resumed_from_step": None,
        },
    }


@pytest.fixture(scope="module")
def execution(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """A store with the records and metrics of a lineage, and the evaluation of the models that were really trained;
    made once for all modules that show it, none of which changes it."""
    root = made_once(tmp_path_factory, "reported", lambda root: write_execution(root, trained))
    return json.loads((root / EXECUTION).read_text(encoding="utf-8")), root / "store"


def write_execution(root: Path, trained: Trained) -> None:
    store = root / "store"
    store.mkdir()
    steps: list[dict[str, Any]] = []

    def publish(stage: str, seed: int, kind: str, fingerprint: str, parents: dict[str, str], **more: Any) -> None:
        step = {"stage": stage, "seed": seed, "kind": kind, "fingerprint": fingerprint, "parents": parents}
        folder = store / fingerprint
        folder.mkdir()
        (folder / "provenance.json").write_text(json.dumps(_record(step, more.get("data", []), 1000)))
        if kind not in ("compress", "evaluate"):
            lines = [
                {"step": at, "tokens": 100 * at, "train/loss": 9 / at, "train/masked_lm": 8 / at, "train/other": 1 / at}
                for at in range(1, 11)
            ]
            (folder / "metrics.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
        steps.append({**step, "cached": more.get("cached", False), "seconds": 3.0})

    publish("general", 0, "pretrain", "a" * 64, {}, data=["general"], cached=True)
    for subject in trained.subjects:
        if subject.stage == "int8":
            publish("int8", 0, "compress", subject.fingerprint, {"start": trained.first("classify").fingerprint})
        else:
            start = {"start": "a" * 64} if subject.stage == "classify" else {}
            tables = ["train", "validation"]
            publish(subject.stage, subject.seed, "finetune", subject.fingerprint, start, data=tables)
    judged = {f"subject:{subject.stage}@{subject.seed}": subject.fingerprint for subject in trained.subjects}
    publish("report", 0, "evaluate", "e" * 64, judged, data=["test"])
    stage = Stage.model_validate({"kind": Kind.EVALUATE, "start": ["scratch", "classify", "int8"], "suite": SUITE})
    evaluate(
        Job(
            fingerprint="e" * 64,
            recipe="tiny",
            stage_name="report",
            stage=stage,
            seed=0,
            language="en",
            subjects=trained.subjects,
            tables=trained.tables,
            out=store / ("e" * 64),
        )
    )
    record = {
        "id": "20260101-000000-tiny",
        "recipe": "tiny",
        "dataset": "documentation",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 75.0,
        "mlflow_run_id": None,
        "prefect_flow_run_id": "f00d",
        "steps": steps,
    }
    (root / EXECUTION).write_text(json.dumps(record), encoding="utf-8")


SUMMARY: dict[str, Any] = {
    "language": "zh",
    "labels": ["好评", "差评"],
    "examples_of_label": {"train": {"好评": 600, "差评": 600}},
    "tables": {"train": {"documents": 1200, "characters": 48000, "bytes": 96000}},
    "shown": [{"label": "好评", "text": "<script>alert(1)</script> 这本书很好看", "source": "x"}],
    "steps": [
        {"step": "collect", "tables": {"train": {"documents": 1250, "characters": 1, "bytes": 1}}},
        {
            "step": "clean",
            "tables": {"train": {"documents": 1200, "characters": 1, "bytes": 1, "dropped": {"empty": 50}}},
        },
    ],
}
VERDICT: dict[str, Any] = {
    "success": False,
    "data_docs": "data/docs/x/index.html",
    "tables": {
        "train": {
            "success": False,
            "expectations": [
                {
                    "expectation": "expect_a",
                    "meaning": "no text is empty",
                    "success": False,
                    "observed": "4 % unexpected",
                },
                {"expectation": "expect_b", "meaning": "b", "success": True, "observed": "0"},
            ],
        }
    },
}


def test_the_page_needs_only_itself_and_tells_what_was_measured(
    execution: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    told, store = execution
    out = render_report(
        told, read_records(told["steps"], store), store, SUMMARY, VERDICT, tmp_path / "r" / "report.html"
    )
    page = out.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.references == ["a href"], "the page in the other language"
    assert not re.search(r"https?://|url\(|@import", page)
    assert sorted(path.name for path in out.parent.iterdir()) == ["report.html", "report.zh.html", "tables"]
    sections = json.loads((store / ("e" * 64) / EVALUATION).read_text())["sections"]
    for stage in sections["classification"]["stages"]:
        assert f"{100 * stage['accuracy']['mean']:.1f} %" in page
    step = sections["classification"]["ladder"][0]
    assert f"{100 * step['accuracy']['difference']:+.1f}" in page
    assert "Pays: pre-training on general text." in page
    assert f"{sections['footprint']['models'][1]['bytes'] / 1e6:.1f} MB" in page
    assert count(sections["footprint"]["models"][0]["operations"]) in page
    assert "Language zh, text classification, 2 classes: 好评, 差评." in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; 这本书很好看" in page
    assert "no text is empty — observed 4 % unexpected" in page
    assert "1 of 2 expectations met" in page
    assert "4.0 %" in page, "the share of texts that cleaning dropped"
    assert page.count("<polyline") == 7 + 7 * 3, "every curve on the common axis, and with its two terms on its own"
    assert f">{trained_first(told)} · 3 seeds<" in page, "the first seed names a stage in the lineage"
    assert "trained · 9.0 s" in page, "three seeds of three seconds"


def test_every_table_lies_beside_the_page_with_the_recorded_numbers(
    execution: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    told, store = execution
    out = render_report(told, read_records(told["steps"], store), store, SUMMARY, VERDICT, tmp_path / "report.html")
    tables = out.parent / "tables"
    sections = json.loads((store / ("e" * 64) / EVALUATION).read_text())["sections"]
    with (tables / "report-report-classification-scores.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
    for stage in sections["classification"]["stages"]:
        for part in ("mean", "low", "high"):
            assert float(rows[stage["stage"]][f"accuracy.{part}"]) == stage["accuracy"][part]
    latex = (tables / "report-report-classification-scores.tex").read_text(encoding="utf-8")
    best = sections["classification"]["stages"][0]["accuracy"]
    assert f"{100 * best['mean']:.1f} \\%" in latex and "<span" not in latex and "\\toprule" in latex
    assert {path.suffix for path in tables.iterdir()} == {".csv", ".tex"}


def test_the_index_leads_to_every_execution(execution: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    told, store = execution
    scores = best_scores(score_tables(read_evaluations(store, [("report", "e" * 64)])))
    for name in ("20260101-000000-aaaa", "20260102-000000-<b>"):
        (tmp_path / name).mkdir()
        (tmp_path / name / EXECUTION).write_text(json.dumps({**told, "id": name, "scores": scores}), encoding="utf-8")
    page = render_index(tmp_path, store).read_text(encoding="utf-8")
    first, second = (page.index(name) for name in ("20260102-000000-", "20260101-000000-"))
    assert first < second, "newest first"
    assert 'href="20260101-000000-aaaa/report.html"' in page and "<b>" not in page
    assert f"{100 * scores[0]['mean']:.1f} %" in page
    assert (tmp_path / "tables" / "index-executions.csv").is_file()


def trained_first(told: dict[str, Any]) -> str:
    fingerprints = {(step["stage"], step["seed"]): str(step["fingerprint"]) for step in told["steps"]}
    return fingerprints["classify", 0][:8]


def test_the_same_execution_gives_the_same_page(execution: tuple[dict[str, Any], Path], tmp_path: Path) -> None:
    told, store = execution
    records = read_records(told["steps"], store)
    first, second = (
        render_report(told, records, store, SUMMARY, VERDICT, tmp_path / name / "report.html").read_bytes()
        for name in ("a", "b")
    )
    assert first == second


def test_an_execution_without_evaluation_data_or_curves_still_has_a_page(tmp_path: Path) -> None:
    step = {"stage": "general", "seed": 0, "kind": "pretrain", "fingerprint": "b" * 64, "parents": {}}
    told = {
        "id": "x",
        "recipe": "tiny",
        "dataset": "d",
        "started": "now",
        "seconds": None,
        "steps": [{**step, "cached": True, "seconds": None}],
    }
    records = {"b" * 64: _record(step, ["general"], 10)}
    page = render_report(told, records, tmp_path, {}, {}, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "general@0" in page
    assert "Stages that pay" not in page


def test_tokens_count_along_the_lineage_of_the_weights(execution: tuple[dict[str, Any], Path]) -> None:
    told, store = execution
    records = read_records(told["steps"], store)
    by_name = {(step["stage"], step["seed"]): step["fingerprint"] for step in told["steps"]}
    assert tokens_before(by_name["general", 0], records) == 0
    assert tokens_before(by_name["classify", 1], records) == 1000
    assert tokens_before(by_name["int8", 0], records) == 2000


def test_numbers_are_written_for_people() -> None:
    assert [count(value) for value in (0, 950, 2000, 1_234_567, 2e9)] == ["0", "950", "2k", "1.2M", "2B"]
    assert [duration(value) for value in (None, 3.21, 42, 95, 7300)] == ["", "3.2 s", "42 s", "1 min 35 s", "2 h 1 min"]
    assert ticks(0, 10) == [0, 2, 4, 6, 8, 10]
    assert ticks(0.31, 0.62, 3) == [0.4, 0.6]
    assert ticks(1, 1) == [1]
    line = [(float(x), 2.0 * x) for x in range(1000)]
    assert len(thinned(line, 100)) == 100
    assert thinned(line, 100)[0] == (4.5, 9.0)


def test_a_validation_on_a_sample_is_said() -> None:
    metrics = {"validation/sample": 10_000.0, "validation/examples": 94_998.0}
    records: dict[str, dict[str, Any]] = {"a": {"result": {"metrics": metrics}}, "b": {"result": {"metrics": {}}}}
    steps = [{"stage": name, "fingerprint": one} for name, one in (("classify", "a"), ("general", "b"), ("x", "c"))]
    assert _sampled_validations(steps, records) == [
        "classify: in each epoch 10,000 of 94,998 examples, at its end all of them"
    ]
