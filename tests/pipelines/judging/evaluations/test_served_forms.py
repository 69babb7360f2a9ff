"""Every served form of two models: true bytes, the same answers as the model itself, and a page with the decision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from pipelines.judging.evaluations.latency import served_bytes
from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.judging.front import ServedForm, choose
from pipelines.judging.limits import Limits
from pipelines.judging.subjects import Subject
from pipelines.models.classifier import load_classifier
from pipelines.models.opening import ModelRecord, build_network, open_config, open_tokenizer
from pipelines.parts.heads import Head
from pipelines.reports.elements.front import draw_front, front_file
from pipelines.reports.report import render_report
from pipelines.reports.sections.compression import decision
from pipelines.serving.runtimes import reference_runtime
from pipelines.task_families import TaskFamily
from tests.pipelines.judging.evaluations.conftest import Trained
from tests.pipelines.judging.evaluations.test_robustness import job
from tests.pipelines.judging.evaluations.tiny_classifier import PACKAGES
from tests.pipelines.reports.test_report import Tags

WITHIN = "500 MB, 500 ms, -90 points"


def with_head(subject: Subject, out: Path) -> Subject:
    """The backbone of a model under a head of this project, saved as a stage saves it."""
    record = ModelRecord(
        head=Head.model_validate("sequence_classification"), family=TaskFamily.default(), labels=PACKAGES
    )
    torch.manual_seed(0)
    network = build_network(record, open_config(subject.folder))
    network.base_model.load_state_dict(load_classifier(subject.folder).base_model.state_dict(), strict=False)
    network.save_pretrained(out)
    open_tokenizer(subject.folder).save_pretrained(out)
    return subject.model_copy(update={"folder": out})


class Measured(NamedTuple):
    """An evaluation of two models, the first of which is the teacher."""

    folder: Path
    section: dict[str, Any]
    folders: dict[str, Path]


@pytest.fixture(scope="module")
def measured(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Measured:
    out = tmp_path_factory.mktemp("store") / ("e" * 64)
    stages = ("classify", "scratch")
    subjects = tuple(with_head(trained.first(one), tmp_path_factory.mktemp("models") / one) for one in stages)
    own = {"rounds": 6, "fastest": 1, "runtimes": ["onnxruntime_fp32", "onnxruntime_int8"]}
    suite = [{"name": "scores"}, {"name": "served_forms", **own}]
    evaluate(job(trained, out, suite, subjects=subjects))
    section = json.loads((out / EVALUATION).read_text())["sections"]["served_forms"]
    return Measured(out, section, {one.stage: one.folder for one in subjects})


def test_every_form_has_its_true_bytes_and_the_teacher_differs_from_itself_by_nothing(
    measured: Measured,
) -> None:
    forms = {(one["stage"], one["runtime"]): one for one in measured.section["forms"]}
    teacher = forms["classify", reference_runtime()]
    assert measured.section["forms"][0] == teacher and teacher["difference"] == {
        "difference": 0.0,
        "low": 0.0,
        "high": 0.0,
        "verdict": "cannot tell",
    }
    for stage in ("classify", "scratch"):
        assert forms[stage, reference_runtime()]["bytes"] == served_bytes(measured.folders[stage])
    int8 = [one["bytes"] for (_, runtime), one in forms.items() if runtime.endswith("int8")]
    assert int8 and max(int8) < teacher["bytes"], "a quarter of the weights"
    assert sum(stage == "scratch" for stage, _ in forms) == 2, "as it is, and in the fastest runtime of the first"
    for one in forms.values():
        assert one["latency_ms"]["1"]["calls"] == 6 and one["latency_ms"]["32"]["calls"] == 2
        assert one["latency_ms"]["1"]["p10"] <= one["latency_ms"]["1"]["median"] <= one["latency_ms"]["1"]["p90"]


def test_a_runtime_of_full_precision_gives_the_score_of_the_model_and_fewer_steps_give_less(
    measured: Measured,
) -> None:
    forms = {(one["stage"], one["runtime"]): one for one in measured.section["forms"]}
    scores = json.loads((measured.folder / EVALUATION).read_text())["sections"]["scores"]["stages"]
    expected = {one["stage"]: one[measured.section["metric"]]["mean"] for one in scores}
    for stage in expected:
        assert forms[stage, reference_runtime()]["score"]["mean"] == pytest.approx(expected[stage])
    exact = forms["classify", "onnxruntime_fp32"]
    assert exact["score"]["mean"] == pytest.approx(expected["classify"]), "the same answers"
    assert forms["scratch", reference_runtime()]["difference"]["difference"] == pytest.approx(
        expected["scratch"] - expected["classify"]
    )
    assert forms["classify", reference_runtime()]["operations"] > 0


def test_the_page_has_the_decision_the_picture_and_every_form(measured: Measured, tmp_path: Path) -> None:
    step = {"stage": "report", "seed": 0, "kind": "evaluate", "fingerprint": "e" * 64, "parents": {}}
    execution = {
        "id": "20260101-000000-tiny",
        "recipe": "compress",
        "dataset": "documentation",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 75.0,
        "parameters": {"within": WITHIN},
        "steps": [{**step, "cached": False, "seconds": 3.0}],
    }
    render_report(execution, {}, measured.folder.parent, {}, {}, tmp_path / "report.html")
    text = (tmp_path / "compression.html").read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert not tags.open and set(tags.references) == {"a href"}, "nothing is fetched"
    forms = [ServedForm.read(one) for one in measured.section["forms"]]
    limits = Limits.parse(WITHIN)
    chosen = choose(forms, limits)
    sentence = decision(forms, measured.section["metric"], limits, chosen)
    assert sentence.startswith(f"Serve {chosen.form.title}: ") and sentence in (tmp_path / "report.html").read_text()
    assert text.count("<circle") == 2 * len(forms), "every form is a point of both panels"
    assert "var(--good)" in text and "var(--accent)" in text, "colours of light, dark and print"


def test_the_picture_is_a_file_of_its_own_and_labels_do_not_cover_each_other(
    measured: Measured,
) -> None:
    forms = [ServedForm.read(one) for one in measured.section["forms"]]
    text = front_file(draw_front(forms, measured.section["metric"], Limits.parse("1 KB"), forms[-1]))
    assert text.startswith("<svg") and "prefers-color-scheme: dark" in text and 'viewBox="0 0 480' in text
    assert ">teacher</text>" in text and 'class="limit"' in text
