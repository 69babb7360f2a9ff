"""An export made on this machine gives the same answers, opens wherever models open, and is written atomically."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.errors import DataError
from pipelines.serving.answering.answerer import Answerer
from pipelines.serving.answering.inference import load_predictor, load_vectors
from pipelines.serving.exported import EXPORT, Export, slow_here
from pipelines.serving.exporting.export import ExportData, ExportLimits, export
from pipelines.serving.exporting.export_data import export_data
from pipelines.serving.exporting.measures import SHAPES, cosines
from pipelines.serving.runtimes import ServingRuntime
from tests.chinese_text import ARTICLES
from tests.pipelines.judging.evaluations.tiny_classifier import documentation, train_classifier
from tests.pipelines.serving.runtimes.tiny_folders import bare_encoder, of_pairs
from tests.shared_folders import compiled_folder
from tests.steps import ROOT

QUICK = ExportLimits(rounds=1, shapes=((1, 16), (4, 32)))
STRICT = ExportLimits(rounds=1, shapes=((1, 16), (1, 32)), least_cosine=0.9999)
"""No 8-bit form reaches it. One text at a time, because torch compiles batches apart, which takes long."""
NEAR = {"torch_fp32": 1 - 1e-6, "onnxruntime_fp32": 1 - 1e-6, "torch_bf16": 0.995, "openvino_bf16": 0.995}
"""Least cosine of the answers of each."""
ONLY = ("onnxruntime_fp32", "openvino_bf16", "openvino_int8") if "CURSUS_TEST_OPENVINO" in os.environ else ()
"""The runtimes of `exported`: all, or, in the process of test_openvino.py, those that are left out in the others, and
two to compare them with (the reference is always one)."""
EIGHT = 0.9
"""Mean cosine of 8-bit answers: in so small a network, a single answer depends on the processor's rounding."""


@pytest.fixture(scope="module", autouse=True)
def cache() -> Iterator[None]:
    """What torch compiles is kept for this module, and for the process of test_openvino.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(compiled_folder().with_name("cache")))
        yield


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small classifier, trained: its answers differ between texts."""
    return train_classifier(tmp_path_factory.mktemp("export") / "model", documentation()["train"], seed=3, steps=100)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [*(text for text, _ in documentation()["test"][:40]), *ARTICLES]


def rows(texts: list[str]) -> list[dict[str, str]]:
    return [{"text": text} for text in texts]


@pytest.fixture(scope="module")
def real(classifier: Path, texts: list[str]) -> ExportData:
    return export_data(classifier, "documentation", rows(texts), rows(texts))


@pytest.fixture(scope="module")
def exported(classifier: Path, real: ExportData) -> tuple[Path, Export]:
    """Every runtime that is installed, and the fastest of them in a folder."""
    folder, limits = classifier.parent / "exported", replace(STRICT, only=ONLY)
    return folder, export(classifier, folder, replace(real, calibration=real.calibration[:16]), limits, model="tiny")


def test_every_installed_runtime_answers_as_float32_does(exported: tuple[Path, Export]) -> None:
    _, record = exported
    assert {*record.measured, *record.left_out} == ({"torch_fp32", *ONLY} if ONLY else set(ServingRuntime.members))
    for name, why in record.left_out.items():
        assert why == ServingRuntime.model_validate(name).missing(), f"{name} was left out although it is installed"
    for name, found in record.measured.items():
        assert found.cosine_least > NEAR[name] if name in NEAR else found.cosine_mean > EIGHT, name
        assert [(each.rows, each.tokens) for each in found.latency] == [(1, 16), (1, 32)]
        assert all(each.p10_ms <= each.median_ms <= each.p90_ms and each.speedup > 0 for each in found.latency)
        assert (found.refused is None) == (found.cosine_least >= STRICT.least_cosine), (
            "the limit decides, and nothing else"
        )
    eight = "openvino_int8" if ONLY else "onnxruntime_int8"
    assert "less than 0.9999" in str(record.measured[eight].refused)
    assert record.measured[record.runtime.name].refused is None
    assert record.measured[eight].bytes < record.measured["onnxruntime_fp32"].bytes


def test_the_folder_is_opened_without_being_told_its_runtime(
    classifier: Path, exported: tuple[Path, Export], texts: list[str]
) -> None:
    folder, record = exported
    before, after = load_predictor(classifier), load_predictor(folder)
    assert before.labels == after.labels
    for size in (1, 7, 32):
        np.testing.assert_allclose(before.predict(texts, size), after.predict(texts, size), atol=0.05)
    assert sorted(path.name for path in folder.iterdir()) == sorted([EXPORT, *record.files])
    said = CliRunner().invoke(app, ["predict", "--json", "--model", str(folder)], input=json.dumps({"text": texts[0]}))
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["label"] == before.labels[int(before.predict(texts[:1])[0].argmax())]


def test_where_none_may_be_chosen_the_reasons_are_told_and_nothing_is_written(
    classifier: Path, real: ExportData, tmp_path: Path
) -> None:
    heard: list[float] = []

    def halved(compute: object) -> float:
        heard.append(1.0 / 2 ** len(heard))
        return heard[-1]

    limits = replace(STRICT, only=("onnxruntime_int8",))
    with pytest.raises(DataError) as told:
        export(classifier, tmp_path / "out", replace(real, score=halved, metric="accuracy"), limits)
    for reason in ("onnxruntime_int8: cosine 0.9", "less than 0.9999", "accuracy 0.5000, float32 has 1.0000"):
        assert reason in str(told.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("family", "head", "runtime"),
    [
        ("pair_classification", {"name": "sequence_classification", "both_orders": True}, "onnxruntime_fp32"),
        ("pair_regression", {"name": "regression", "middle": 2.5}, "torch_fp32"),
    ],
    ids=["classes of both orders", "a score"],
)
def test_pairs_are_answered_from_an_export(
    classifier: Path, tmp_path: Path, family: str, head: dict[str, object], runtime: str
) -> None:
    model = of_pairs(classifier, tmp_path / "model", family, head)
    test = documentation()["test"]
    pairs = [{"text_a": a, "text_b": b} for (a, _), (b, _) in zip(test[:24], test[24:48], strict=True)]
    before = Answerer(model).answer(pairs)
    limits = replace(QUICK, least_cosine=0.9999, only=(runtime,))
    export(model, tmp_path / "out", export_data(model, "pairs", pairs, pairs), limits)
    after = Answerer(tmp_path / "out").answer(pairs)
    if isinstance(before[0], float):
        np.testing.assert_allclose(after, before, atol=1e-4)
        assert np.ptp(before) > 1e-3
    else:
        assert after == before
    said = CliRunner().invoke(app, ["predict", "--json", "--model", str(tmp_path / "out")], input=json.dumps(pairs[0]))
    assert said.exit_code == 0, said.output


def test_a_bare_encoder_gives_the_mean_of_its_states(classifier: Path, tmp_path: Path, texts: list[str]) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    model = bare_encoder(classifier, tmp_path / "model")
    limits = replace(QUICK, only=("onnxruntime_fp32",))
    record = export(model, tmp_path / "out", export_data(model, "texts", rows(texts), rows(texts)), limits)
    assert record.output == "vector"
    network, tokenizer = AutoModel.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    found = load_vectors(tmp_path / "out").encode(texts)
    for text, vector in zip(texts, found, strict=True):
        batch = tokenizer(text, truncation=True, return_tensors="pt")
        with torch.inference_mode():
            states = network(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
        np.testing.assert_allclose(states[0].mean(0).numpy(), vector, atol=1e-4)
    with pytest.raises(DataError, match="returns vectors; open it with load_vectors"):
        load_predictor(tmp_path / "out")


def test_a_model_that_says_more_than_one_array_of_a_text_is_refused(
    classifier: Path, real: ExportData, tmp_path: Path
) -> None:
    from tests.tasks.answering_folders import save_answering

    model = save_answering(classifier, tmp_path / "model", "tagging", "tagging", ("O", "B-X", "I-X"))
    with pytest.raises(DataError, match=r"its head \(tagging\) does not return a single array per text"):
        export(model, tmp_path / "out", real, QUICK)


def test_a_folder_moved_to_a_machine_without_its_runtime_says_what_to_install(
    exported: tuple[Path, Export], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(exported[0], moved)
    told = json.loads((moved / EXPORT).read_text())
    told["runtime"] = {"name": "openvino_int8"}
    (moved / EXPORT).write_text(json.dumps(told))
    monkeypatch.setitem(sys.modules, "nncf", None)  # what Python itself takes for "not to be imported"
    with pytest.raises(DataError, match=r"openvino_int8, which cannot run here: .*nncf not installed: .*\[openvino\]"):
        load_predictor(moved)
    told["runtime"] = {"name": "openvino_int9"}
    (moved / EXPORT).write_text(json.dumps(told))
    with pytest.raises(DataError, match="written by another version of cursus .*Did you mean 'openvino_int8'"):
        load_predictor(moved)


def test_a_changed_file_is_refused(exported: tuple[Path, Export], tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(exported[0], moved)
    weights = max(moved.iterdir(), key=lambda path: path.stat().st_size)
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    with pytest.raises(DataError, match=f"{weights.name}: missing, or not as it was exported"):
        load_predictor(moved)


def test_a_slower_processor_is_told_of(exported: tuple[Path, Export]) -> None:
    _, record = exported
    there = record.machine.model_copy(update={"instructions": ("amx_bf16", "avx512_bf16")})
    record = record.model_copy(update={"runtime": ServingRuntime.model_validate("torch_bf16"), "machine": there})
    assert slow_here(record, frozenset({"avx2", "avx512_bf16"})) is None
    assert "on a processor with amx_bf16, avx512_bf16; this one has none (" in str(
        slow_here(record, frozenset({"avx2"}))
    )
    slow_there = record.model_copy(update={"machine": there.model_copy(update={"instructions": ()})})
    assert slow_here(slow_there, frozenset({"avx2"})) is None, "it was no faster where it was measured"


def test_a_killed_export_leaves_no_folder_and_the_next_one_cleans_up(
    classifier: Path, real: ExportData, tmp_path: Path, texts: list[str]
) -> None:
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(" ".join(text.split()) for text in texts), encoding="utf-8")
    home = tmp_path / "home"
    command = [
        sys.executable,
        "-m",
        "flows.cli.app",
        "export",
        str(classifier),
        "--to",
        str(home / "served"),
        "--texts",
        str(lines),
    ]
    command += ["--only", "torch_fp32", "--rounds", "1000000"]
    environment = {**os.environ, "CURSUS_ROOT": str(tmp_path), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        heard = ""
        for line in running.stderr:
            heard += line
            if "timing" in line:
                running.send_signal(signal.SIGKILL)
                break
        running.wait()
    assert "timing torch_fp32" in heard, heard
    assert not (home / "served").exists()
    assert (home / ".served.exporting").exists()
    export(classifier, home / "served", real, replace(QUICK, only=("torch_fp32",)))
    assert [path.name for path in home.iterdir()] == ["served"]


def test_what_is_no_export_is_not_overwritten(classifier: Path, real: ExportData) -> None:
    with pytest.raises(DataError, match="contains files that are not an export"):
        export(classifier, classifier, real, QUICK)
    with pytest.raises(DataError, match="there is no runtime 'onnxruntime_fp3'. Did you mean 'onnxruntime_fp32'"):
        export(classifier, classifier.parent / "x", real, replace(QUICK, only=("onnxruntime_fp3",)))
    with pytest.raises(DataError, match="0 texts to compare answers on"):
        export(classifier, classifier.parent / "x", ExportData("nothing", (), ()), QUICK)


def test_cosines_are_of_answers_and_of_differences_where_an_answer_is_one_number() -> None:
    first = np.asarray([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    np.testing.assert_allclose(cosines(first, np.asarray([[2.0, 0.0], [2.0, 0.0], [1.0, 0.0]])), [1, 0, 0])
    scores = np.asarray([[1.0], [2.0], [3.0]])
    np.testing.assert_allclose(cosines(scores, scores * 2 - 2), [1])
    assert cosines(scores, scores + 3)[0] < 0.5, "an offset is a difference"
    assert SHAPES == ((1, 32), (1, 128), (32, 32), (32, 128))


def test_nothing_of_openvino_phones_home(exported: tuple[Path, Export]) -> None:
    if "openvino_int8" in exported[1].left_out:
        pytest.skip(exported[1].left_out["openvino_int8"])
    assert sys.modules["openvino_telemetry"] is None
    import nncf.telemetry

    assert "Stub" in type(nncf.telemetry.telemetry).__name__ or "Mock" in type(nncf.telemetry.telemetry).__name__
