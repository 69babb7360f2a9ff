"""The evaluate stage on real models, real texts and real tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from sklearn.metrics import accuracy_score, f1_score
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoTokenizer, BertForSequenceClassification

from pipelines.corpora.leaks.leaked_rows import LEAKED
from pipelines.errors import CursusError, DataError, RecipeError
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.stage import EVALUATION, PREDICTIONS, evaluate
from pipelines.judging.samples import read_samples
from pipelines.lineage.results import Result
from pipelines.recipe.job import Job
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Stage
from pipelines.task_families import TaskFamily
from tests.pipelines.judging.evaluations.conftest import Trained
from tests.pipelines.judging.evaluations.tiny_classifier import PACKAGES, write_tables

SUITE: list[dict[str, Any]] = [
    {"name": "classification", "ladder": ["scratch", "classify"]},
    {"name": "baselines", "against": "classify"},
    {"name": "footprint", "stages": ["classify", "int8"], "rounds": 6},
]


def _job(trained: Trained, out: Path, suite: list[dict[str, Any]], **changes: Any) -> Job:
    stage = Stage.model_validate({"kind": Kind.EVALUATE, "start": ["scratch", "classify", "int8"], "suite": suite})
    values = {
        "fingerprint": "f" * 64,
        "recipe": "tiny",
        "stage_name": "report",
        "stage": stage,
        "seed": 0,
        "language": "en",
        "subjects": trained.subjects,
        "tables": trained.tables,
        "out": out,
    }
    return Job(**(values | changes))


@pytest.fixture(scope="module")
def finished(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    out = tmp_path_factory.mktemp("report")
    return out, evaluate(_job(trained, out, SUITE))


def test_scores_are_scikit_learns_on_the_written_predictions(finished: tuple[Path, Result]) -> None:
    out, result = finished
    rows = parquet.read_table(out / PREDICTIONS).to_pylist()
    sections = json.loads((out / EVALUATION).read_text())["sections"]
    for stage in sections["classification"]["stages"]:
        for seed, accuracy, f1 in zip(
            stage["seeds"], stage["accuracy"]["per_seed"], stage["macro_f1"]["per_seed"], strict=True
        ):
            mine = [row for row in rows if (row["stage"], row["seed"]) == (stage["stage"], seed)]
            truth, predicted = [row["label"] for row in mine], [row["predicted"] for row in mine]
            assert accuracy == pytest.approx(accuracy_score(truth, predicted), abs=1e-6)
            assert f1 == pytest.approx(f1_score(truth, predicted, average="macro"), abs=1e-6)
        assert result.metrics[f"test/accuracy/{stage['stage']}"] == pytest.approx(stage["accuracy"]["mean"])


def test_predictions_are_those_of_the_models_in_the_order_of_the_table(
    finished: tuple[Path, Result], trained: Trained
) -> None:
    table = parquet.read_table(finished[0] / PREDICTIONS)
    labels = json.loads(table.schema.metadata[b"labels"])
    rows = table.to_pylist()
    assert len(rows) == len(trained.subjects) * len(trained.splits["test"])
    assert [row["label"] for row in rows[: len(trained.splits["test"])]] == [
        label for _, label in trained.splits["test"]
    ]
    for row in rows:
        assert row["predicted"] == labels[int(np.argmax(row["probabilities"]))]
        assert sum(row["probabilities"]) == pytest.approx(1, abs=1e-4)


def test_the_samples_of_figures_give_the_recorded_scores(trained: Trained, tmp_path: Path) -> None:
    suite = [{"name": "scores"}, {"name": "saved_size"}]
    evaluate(_job(trained, tmp_path, suite))
    sections = json.loads((tmp_path / EVALUATION).read_text())["sections"]
    samples = read_samples(tmp_path)
    figures = {one.name: one for name in sections for one in Evaluation.members[name].figures(TaskFamily.default())}
    for stage in sections["scores"]["stages"]:
        for metric in sections["scores"]["metrics"]:
            figure = figures[metric]
            per_seed = [figure.score(rows) for rows in samples[figure.sample, stage["stage"]]]
            assert per_seed == pytest.approx(stage[metric]["per_seed"])
    for size in sections["saved_size"]["sizes"]:
        folder = trained.first(size["stage"]).folder
        weights = next(path for path in folder.iterdir() if path.suffix in (".safetensors", ".onnx"))
        assert size["bytes"] >= weights.stat().st_size >= size["parameters"]
        (rows,) = samples["bytes", size["stage"]]
        assert figures["bytes"].score(rows) == size["bytes"] and figures["bytes"].exact


def test_training_longer_pays_and_the_record_says_so(finished: tuple[Path, Result]) -> None:
    section = json.loads((finished[0] / EVALUATION).read_text())["sections"]["classification"]
    (step,) = section["ladder"]
    assert (step["from"], step["to"], step["verdict"]) == ("scratch", "classify", "pays")
    assert step["accuracy"]["low"] > 0
    assert section["whole_ladder"] is None
    assert (step["p_holm"] < 0.05) == (step["verdict"] != "cannot tell"), "of a single step nothing is corrected"
    assert set(step["these_models"]) == {"randomisation", "mcnemar"}
    assert all(0 < value <= 1 for value in step["these_models"].values())
    assert section["resamples"] >= 2000


def test_baselines_learn_what_can_be_learnt_by_counting(finished: tuple[Path, Result], trained: Trained) -> None:
    majority, frequent, tfidf = json.loads((finished[0] / EVALUATION).read_text())["sections"]["baselines"]["baselines"]
    train = [label for _, label in trained.splits["train"]]
    test = [label for _, label in trained.splits["test"]]
    most = max(PACKAGES, key=train.count)
    assert majority["accuracy"]["mean"] == pytest.approx(test.count(most) / len(test), abs=1e-6)
    assert frequent["accuracy"]["mean"] == pytest.approx(max(map(test.count, PACKAGES)) / len(test), abs=1e-6)
    assert frequent["name"] == "most_frequent" and majority["name"] == "majority"
    assert tfidf["accuracy"]["low"] > 1 / len(PACKAGES)
    assert tfidf["settings"]["analyzer"] == "word"
    assert tfidf["settings"]["C"] in (0.1, 1.0, 10.0, 100.0)
    observed = tfidf["accuracy_of_classify_minus_this"]
    assert observed["low"] <= observed["difference"] <= observed["high"]


def test_footprint_measures_the_served_files(finished: tuple[Path, Result], trained: Trained) -> None:
    section = json.loads((finished[0] / EVALUATION).read_text())["sections"]["footprint"]
    teacher, int8 = section["models"]
    assert (teacher["runtime"], teacher["weights"]) == ("torch", "float32")
    assert (int8["runtime"], int8["weights"]) == ("onnxruntime", "int8")
    folder = trained.first("classify").folder
    network = BertForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    assert teacher["parameters"] == network.num_parameters()
    # the constants of the exported graph are a few dozen numbers
    assert abs(int8["parameters"] - teacher["parameters"]) < 0.02 * teacher["parameters"]
    assert int8["weight_bytes"] == (trained.first("int8").folder / "model.onnx").stat().st_size
    rows = parquet.read_table(trained.tables["test"]).to_pylist()[:16]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with FlopCounterMode(display=False) as counter:
        for row in rows:
            network(**tokenizer(row["text"], truncation=True, return_tensors="pt"))
    assert teacher["operations"] == pytest.approx(counter.get_total_flops() / 16, abs=1)
    assert int8["operations"] is None, "torch does not compute a graph"
    assert teacher["agreement"] == 1.0
    assert int8["agreement"] > 0.9
    for model in section["models"]:
        for batch in ("1", "32"):
            assert 0 < model["latency_ms"][batch]["median"] <= model["latency_ms"][batch]["p90"]
    assert section["machine"]["threads"] == 1


def test_everything_but_latency_is_the_same_again(
    finished: tuple[Path, Result], trained: Trained, tmp_path: Path
) -> None:
    evaluate(_job(trained, tmp_path, SUITE[:2]))
    assert (tmp_path / PREDICTIONS).read_bytes() == (finished[0] / PREDICTIONS).read_bytes()
    first, second = (json.loads((folder / EVALUATION).read_text()) for folder in (finished[0], tmp_path))
    assert second["sections"] == {name: first["sections"][name] for name in ("classification", "baselines")}
    assert second["dataset"] == first["dataset"]


def test_a_stage_that_is_not_judged_is_refused_before_anything_is_written(trained: Trained, tmp_path: Path) -> None:
    for evaluation in (
        {"name": "classification", "ladder": ["scratch", "clasify"]},
        {"name": "footprint", "stages": ["clasify"]},
        {"name": "baselines", "against": "clasify"},
    ):
        with pytest.raises(RecipeError, match=r"'clasify'.*Did you mean 'classify'"):
            evaluate(_job(trained, tmp_path / "out", [evaluation]))
    assert not (tmp_path / "out").exists()


def _refusal(job: Job) -> str:
    with pytest.raises(CursusError) as caught:
        evaluate(job)
    assert isinstance(caught.value, DataError)
    assert not job.out.exists()
    return str(caught.value)


def test_tables_that_cannot_be_judged_on_are_named(trained: Trained, tmp_path: Path) -> None:
    splits = trained.splits
    suite = SUITE[:1]
    empty = write_tables({"test": []}, tmp_path / "empty")
    foreign = write_tables({"test": [*splits["test"], ("Fold a value.", "functools")]}, tmp_path / "foreign")
    out = tmp_path / "out"
    assert "test.parquet: the table is empty" in _refusal(_job(trained, out, suite, tables=trained.tables | empty))
    assert "label 'functools'" in _refusal(_job(trained, out, suite, tables=trained.tables | foreign))
    lacking = {name: path for name, path in trained.tables.items() if name != "test"}
    assert "needs the table 'test'" in _refusal(_job(trained, out, suite, tables=lacking))


def test_chinese_is_counted_by_characters(trained: Trained, tmp_path: Path) -> None:
    good = ["这本书很好看", "内容精彩，推荐", "非常喜欢这本书", "质量很好，很喜欢", "写得真好，值得一读"]
    bad = ["质量太差了", "很失望，不推荐", "内容空洞，太差", "印刷模糊，失望", "浪费时间，太无聊"]
    examples = [(text, PACKAGES[0]) for text in good] + [(text, PACKAGES[1]) for text in bad]
    tables = write_tables(dict.fromkeys(("train", "validation", "test"), examples), tmp_path / "tables")
    job = _job(trained, tmp_path / "out", [{"name": "baselines"}], language="zh", tables=tables)
    metrics = evaluate(job).metrics
    record = json.loads((tmp_path / "out" / EVALUATION).read_text())["sections"]["baselines"]["baselines"][-1]
    assert record["settings"]["analyzer"] == "char"
    assert metrics["test/accuracy/tfidf"] == 1.0


def test_a_leaking_test_table_gets_a_clean_score_beside_the_official_one(trained: Trained, tmp_path: Path) -> None:
    table = parquet.read_table(trained.tables["test"])
    leaked = list(range(0, table.num_rows, 3))
    parquet.write_table(table.replace_schema_metadata({LEAKED: json.dumps(leaked)}), tmp_path / "test.parquet")
    tables = trained.tables | {"test": tmp_path / "test.parquet"}
    result = evaluate(_job(trained, tmp_path / "out", SUITE[:1], tables=tables))
    rows = [row for row in parquet.read_table(tmp_path / "out" / PREDICTIONS).to_pylist() if row["stage"] == "classify"]
    clean = [row for row in rows if row["index"] not in leaked]
    wanted = accuracy_score([row["label"] for row in clean], [row["predicted"] for row in clean])
    section = json.loads((tmp_path / "out" / EVALUATION).read_text())["sections"]["classification"]
    assert section["clean_examples"] == table.num_rows - len(leaked) < section["examples"] == table.num_rows
    (stage,) = [each for each in section["stages"] if each["stage"] == "classify"]
    assert stage["clean"]["accuracy"]["mean"] == pytest.approx(wanted, abs=1e-6)
    assert result.metrics["test_clean/accuracy/classify"] == pytest.approx(wanted, abs=1e-6)
    official = accuracy_score([row["label"] for row in rows], [row["predicted"] for row in rows])
    assert result.metrics["test/accuracy/classify"] == pytest.approx(official, abs=1e-6)
